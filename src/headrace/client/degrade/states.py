"""Whether a rule is engaged. Pure: a state and what happened give the next state, all in one table.

Between its two bounds a rule stays what it is (hysteresis), so a lag that hovers around one bound does not switch it on and off. A
command from a person wins over the bounds until `auto`.
"""

from __future__ import annotations

from enum import StrEnum


class RuleState(StrEnum):
    OFF = "off"
    ENGAGED = "engaged"
    """By its own condition."""
    HELD_ON = "held on"
    """By a command."""
    HELD_OFF = "held off"

    @property
    def acts(self) -> bool:
        return self in (RuleState.ENGAGED, RuleState.HELD_ON)


class Signal(StrEnum):
    """What a rule's condition says now."""

    ENGAGE = "engage"
    STAY = "stay"
    """Between the bounds, or not known."""
    RELEASE = "release"


class Order(StrEnum):
    """What the last command says."""

    ON = "on"
    OFF = "off"
    AUTO = "auto"


_NEXT: dict[tuple[RuleState, Signal | Order], RuleState] = {
    (RuleState.OFF, Signal.ENGAGE): RuleState.ENGAGED,
    (RuleState.ENGAGED, Signal.RELEASE): RuleState.OFF,
    (RuleState.OFF, Order.ON): RuleState.HELD_ON,
    (RuleState.ENGAGED, Order.ON): RuleState.HELD_ON,
    (RuleState.HELD_OFF, Order.ON): RuleState.HELD_ON,
    (RuleState.OFF, Order.OFF): RuleState.HELD_OFF,
    (RuleState.ENGAGED, Order.OFF): RuleState.HELD_OFF,
    (RuleState.HELD_ON, Order.OFF): RuleState.HELD_OFF,
    # Not engaged: between the bounds, taking back a command means to do everything again.
    (RuleState.HELD_ON, Order.AUTO): RuleState.OFF,
    (RuleState.HELD_OFF, Order.AUTO): RuleState.OFF,
}
"""Whatever is not listed changes nothing."""


def after(state: RuleState, order: Order, signal: Signal) -> RuleState:
    """The command first, then the condition: a held state does not listen to it."""
    ordered = _NEXT.get((state, order), state)
    return _NEXT.get((ordered, signal), ordered)

"""When a rule engages by itself: a lag past an upper bound, until it is below a lower one. Pure; the figures are `client/lag.py`'s."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from headrace.client.degrade.states import Signal
from headrace.client.durations import show_seconds
from headrace.client.errors import ConfigError
from headrace.client.lag import GroupLag
from headrace.client.lag_states import LagState

Bounds = tuple[float, float]
"""(engage at, release at)"""


@dataclass(frozen=True, slots=True)
class LagBounds:
    """A rule with it engages when one of these is passed, and is released when all of them are on the good side again.

    >>> LagBounds(records=(10_000, 1_000), seconds=(30, 5))
    >>> LagBounds(group="orders", until_loss=(3600, 7200))

    Each pair is (engage, release). ``records`` and ``seconds`` are how far behind the group is, ``catch_up`` the seconds until it
    has caught up, ``until_loss`` the seconds until retention deletes unread records (engages below). ``states`` engage it
    until the group is ok again. ``group`` is whose lag counts; the runner's own unless another is named.
    """

    records: Bounds | None = None
    seconds: Bounds | None = None
    catch_up: Bounds | None = None
    until_loss: Bounds | None = None
    states: Collection[str] = ()
    group: str | None = None

    def __post_init__(self) -> None:
        if not any((self.records, self.seconds, self.catch_up, self.until_loss, self.states)):
            raise ConfigError("LagBounds needs a bound, such as records=(10_000, 1_000)")
        for name in ("records", "seconds", "catch_up"):
            pair = getattr(self, name)
            if pair is not None and not 0 <= pair[1] < pair[0]:
                raise ConfigError(
                    f"LagBounds({name}={pair}): write (engage, release), where release is lower, as in (10_000, 1_000)"
                )
        if self.until_loss is not None and not 0 <= self.until_loss[0] < self.until_loss[1]:
            raise ConfigError(
                f"LagBounds(until_loss={self.until_loss}): write (engage, release), where release is higher, as in (3600, 7200)"
            )
        unknown = set(self.states) - {each.value for each in LagState if each is not LagState.OK}
        if isinstance(self.states, str) or unknown:
            raise ConfigError(
                f"LagBounds(states={self.states!r}): choose from {', '.join(each.value for each in LagState if each is not LagState.OK)}"
            )

    def signal(self, lag: GroupLag | None) -> tuple[Signal, str]:
        """With why, for people. A lag that is not known changes nothing."""
        if lag is None:
            return Signal.STAY, "the lag is not known"
        found = list(self._judged(lag))
        for signal, why in found:
            if signal is Signal.ENGAGE:
                return signal, f"{lag.group_id}: {why}"
        stays = any(signal is Signal.STAY for signal, _ in found)
        return (
            Signal.STAY if stays else Signal.RELEASE,
            f"{lag.group_id}: {'; '.join(why for _, why in found)}",
        )

    def _judged(self, lag: GroupLag) -> Iterable[tuple[Signal, str]]:
        if self.records is not None:
            yield _above(lag.records, self.records), f"{lag.records:,} records unread"
        if self.seconds is not None:
            yield _above(lag.seconds, self.seconds), f"{show_seconds(lag.seconds) or 'unknown time'} behind"
        if self.catch_up is not None:
            left = lag.seconds_to_catch_up
            yield _above(left, self.catch_up), f"caught up in {show_seconds(left) or 'unknown time'}"
        if self.until_loss is not None:
            left = lag.seconds_until_loss
            # Not known most often means that things do not lead there.
            known = left if left is not None else float("inf")
            engage, release = self.until_loss
            signal = Signal.ENGAGE if known <= engage else Signal.RELEASE if known > release else Signal.STAY
            yield signal, f"retention deletes unread records in {show_seconds(left) or 'no foreseeable time'}"
        if self.states:
            listed, ok = lag.state.value in self.states, lag.state is LagState.OK
            yield Signal.ENGAGE if listed else Signal.RELEASE if ok else Signal.STAY, f"is {lag.state.value}"


def _above(value: float | None, bounds: Bounds) -> Signal:
    if value is None:
        return Signal.STAY
    engage, release = bounds
    return Signal.ENGAGE if value >= engage else Signal.RELEASE if value <= release else Signal.STAY


Condition = LagBounds | Literal["always", "command"]

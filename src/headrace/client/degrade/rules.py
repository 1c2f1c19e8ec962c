"""What a rule drops while it is engaged. Pure: a rule looks at one record and the time, and says why it would drop it, or None.

A rule is about whole records, or about one of several handlers. What it cannot judge, it keeps.
"""

from __future__ import annotations

import hashlib
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from headrace.client.degrade.conditions import Condition, LagBounds
from headrace.client.durations import show_seconds
from headrace.client.errors import ClientError, ConfigError
from headrace.client.record import Record
from headrace.client.repeats import Repeats

log = logging.getLogger("headrace.client.degrade")
log.addFilter(Repeats())

_PART_OF_A_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,230}")
GROUP = "group"
"""The name of the rule that every degradable group has: switch all of it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(ABC):
    """``name`` is what commands call it, ``handler`` the one of several that it is about, ``when`` what engages it:
    LagBounds, "always", or "command" for `headrace degrade on` alone."""

    name: str = ""
    handler: str | None = None
    when: Condition = "always"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self._default_name())
        if not isinstance(self.when, LagBounds) and self.when not in ("always", "command"):
            raise ConfigError(
                f'rule {self.name}: when is {self.when!r}; give LagBounds, "always" or "command"'
            )

    @abstractmethod
    def reason(self, record: Record[Any, Any], now: float) -> str | None:
        """Why this record is dropped; None keeps it. ``now`` is in seconds since 1970."""

    @abstractmethod
    def _default_name(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDeadline(Rule):
    """Drop what comes too late: older than ``max_age`` seconds, or past the deadline in a ``header`` or a ``field`` of the value.

    A deadline is milliseconds since 1970, or a time such as 2026-11-11T00:00:10Z; a record without one is kept.
    """

    max_age: float | None = None
    header: str | None = None
    field: str | None = None

    def __post_init__(self) -> None:
        # By name, since a dataclass with slots is made anew and the empty super() does not find it.
        Rule.__post_init__(self)
        if sum(each is not None for each in (self.max_age, self.header, self.field)) != 1:
            raise ConfigError("PastDeadline needs exactly one of max_age=, header= and field=")
        if self.max_age is not None and self.max_age <= 0:
            raise ConfigError("PastDeadline(max_age=) is a number of seconds above 0")

    def reason(self, record: Record[Any, Any], now: float) -> str | None:
        if self.max_age is not None:
            if record.timestamp < 0 or now - record.timestamp / 1000 <= self.max_age:
                return None
            return f"older than {show_seconds(self.max_age)}"
        if self.header is not None:
            due = _time_of(record.header(self.header))
        else:
            value = _value_of(record)
            due = _time_of(value.get(self.field)) if isinstance(value, Mapping) else None
        return "past its deadline" if due is not None and now > due else None

    def _default_name(self) -> str:
        return "past_deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleByKey(Rule):
    """Keep this share of the keys, always the same ones, and drop the rest; records without a key are sampled one by one.

    The keys kept at a smaller share are among those kept at a larger one.
    """

    keep: float

    def __post_init__(self) -> None:
        Rule.__post_init__(self)
        if not 0 <= self.keep < 1:
            raise ConfigError(
                "SampleByKey(keep=) is a share from 0 to below 1, such as 0.1 for one key in ten"
            )

    def reason(self, record: Record[Any, Any], now: float) -> str | None:
        key = record.raw_key
        if key is None:
            key = f"{record.partition}/{record.offset}".encode()
        place = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) / 2**64
        return None if place < self.keep else f"outside the sample of {self.keep:.4g} of the keys"

    def _default_name(self) -> str:
        return "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropWhere(Rule):
    """Drop the records for which a function of the record is true; where it raises, the record is kept."""

    predicate: Callable[[Record[Any, Any]], object]

    def reason(self, record: Record[Any, Any], now: float) -> str | None:
        try:
            return f"{self.name} holds" if self.predicate(record) else None
        except Exception as error:  # the user's own function: whatever it raises must not stop the runner
            log.warning("the rule %s keeps what it cannot judge: %r", self.name, error)
            return None

    def _default_name(self) -> str:
        return "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOff(Rule):
    """Switch a handler off, or with no ``handler`` the whole group, which then keeps its place and reads nothing."""

    when: Condition = field(default="command")

    def __post_init__(self) -> None:
        Rule.__post_init__(self)
        if self.when == "always":
            raise ConfigError(f"rule {self.name}: what is always switched off need not be there")

    def reason(self, record: Record[Any, Any], now: float) -> str | None:
        return None if self.handler is None else f"handler {self.handler} is switched off"

    def _default_name(self) -> str:
        return self.handler or GROUP


def completed(rules: tuple[Rule, ...], group: str, handlers: tuple[str, ...]) -> tuple[Rule, ...]:
    """Checked, and with a switch for the group and for each of several handlers, where there is none yet."""
    if not _PART_OF_A_TOPIC.fullmatch(group):
        raise ConfigError(
            f"the group {group!r} cannot have rules: its name becomes part of topics' names, so it may have letters, "
            "digits, '.', '_' and '-', at most 230 of them"
        )
    made = list(rules)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise ConfigError(f"degrade= takes rules such as SampleByKey(keep=0.1), not {rule!r}")
        if rule.handler is not None and rule.handler not in handlers:
            known = f"it has {', '.join(handlers)}" if handlers else "it has one without a name"
            raise ConfigError(
                f"rule {rule.name} is about the handler {rule.handler!r}, which this runner has not: {known}"
            )
        own = isinstance(rule.when, LagBounds) and rule.when.group in (None, group)
        if isinstance(rule, SwitchOff) and rule.handler is None and own:
            raise ConfigError(
                f"rule {rule.name} would switch the group {group} off by its own lag, which only grows then: "
                "name the group to watch, as in LagBounds(group=...)"
            )
    switched = {rule.handler for rule in rules if isinstance(rule, SwitchOff)}
    made += [SwitchOff(handler=handler) for handler in (None, *handlers) if handler not in switched]
    names = [rule.name for rule in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"two rules are called {twice[0]!r}: give each its own name=")
    return tuple(made)


def _value_of(record: Record[Any, Any]) -> object:
    try:
        return record.value
    except ClientError:
        return None  # poison: the handler's failure says so


def _time_of(given: object) -> float | None:
    """Seconds since 1970; None for what is no time."""
    text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
    try:
        if isinstance(text, str) and not text.strip().lstrip("-").isdigit():
            when = datetime.fromisoformat(text.strip())
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        return int(text) / 1000 if isinstance(text, str | int | float) else None
    except (ValueError, OverflowError):
        return None

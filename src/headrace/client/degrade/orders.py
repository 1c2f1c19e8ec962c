"""Giving commands to degradable groups and asking how they are: what `headrace degrade` does, for programs too."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from headrace.client.admin import Admin, session_of
from headrace.client.config import Config, connection_settings, merged
from headrace.client.degrade import notes
from headrace.client.degrade.control import Board, Command, Control, Report, me
from headrace.client.degrade.notes import Account, Notes
from headrace.client.degrade.states import Order, RuleState
from headrace.client.errors import ConfigError
from headrace.client.producer import Producer
from headrace.nearest import nearest

_EXPECTED = {
    Order.ON: {RuleState.HELD_ON},
    Order.OFF: {RuleState.HELD_OFF},
    Order.AUTO: {RuleState.OFF, RuleState.ENGAGED},
}
_LOOK_AGAIN = 0.2


@dataclass(frozen=True, slots=True)
class RuleStatus:
    rule: str
    does: str | None
    handler: str | None
    when: str | None
    states: dict[str, int]
    """How many instances are in which state."""
    since: float | None
    why: str | None
    command: Command | None
    dropped: int
    left: int
    """Of the dropped ones, those that were not replayed yet."""

    def as_json(self) -> dict[str, Any]:
        command = self.command
        return {
            "rule": self.rule,
            "does": self.does,
            "handler": self.handler,
            "when": self.when,
            "states": self.states,
            "since": self.since,
            "why": self.why,
            "command": None
            if command is None
            else {
                "order": command.order.value,
                "by": command.by,
                "at": command.at,
                "until": command.until,
                "why": command.why,
            },
            "dropped": self.dropped,
            "left": self.left,
        }


@dataclass(frozen=True, slots=True)
class GroupStatus:
    group: str
    instances: tuple[Report, ...]
    """Those that run now."""
    rules: tuple[RuleStatus, ...]
    account: Account

    def as_json(self) -> dict[str, Any]:
        account = self.account
        return {
            "group": self.group,
            "instances": [
                {"instance": each.instance, "kind": each.kind, "at": each.at} for each in self.instances
            ],
            "rules": [each.as_json() for each in self.rules],
            "dropped": account.total(notes.DROPPED),
            "replayed": account.total(notes.REPLAYED),
            "lost": account.total(notes.LOST),
            "left": account.remaining,
            "partitions": [
                {
                    "rule": drop.rule,
                    "handler": drop.handler,
                    "topic": drop.topic,
                    "partition": drop.partition,
                    "dropped": account.counts.get((notes.DROPPED, drop), 0),
                    "left": len(spans),
                }
                for drop, spans in account.left.items()
            ],
        }


class Orders:
    def __init__(self, config: Config = None, /, **settings: object) -> None:
        self._connection = connection_settings(merged(config, settings))
        self._control = Control(self._connection)
        self._admin = Admin(self._connection)

    def give(
        self,
        group: str,
        rules: Sequence[str],
        order: Order,
        *,
        seconds: float | None = None,
        why: str | None = None,
    ) -> list[Command]:
        """Order it; without ``rules`` all that the group is known to have. ``seconds`` is how long it lasts."""
        board = self._board()
        running = board.of(group, time.time())
        known = {rule.name for report in running for rule in report.rules}
        for name in rules:
            if known and name not in known:
                near = nearest(name, known)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(known))}"
                raise ConfigError(f"the group {group} has no rule {name!r}: {hint}")
        chosen = list(rules) or sorted(known | {rule for each, rule in board.commands if each == group})
        if not chosen:
            raise ConfigError(
                f"nothing with rules runs in the group {group}, and nothing was ordered for it: "
                "give its Runner degrade=[...], or name the rules to have the command wait for them"
            )
        now = time.time()
        until = None if seconds is None else now + seconds
        commands = [Command(group, rule, order, me(), now, until, why) for rule in chosen]
        self._control.ensure(self._admin)
        with Producer[bytes, bytes](self._connection, linger_ms=0) as producer:
            for command in commands:
                self._control.order(producer, command)
        return commands

    def confirmed(self, commands: Sequence[Command], patience: float) -> tuple[int, int]:
        """How many of the running instances have taken the commands up, after waiting for them; and of how many."""
        deadline = time.monotonic() + patience
        while True:
            board = self._board()
            running = [
                each for group in {each.group for each in commands} for each in board.of(group, time.time())
            ]
            done = sum(_obeys(report, commands) for report in running)
            if done == len(running) or time.monotonic() >= deadline:
                return done, len(running)
            time.sleep(_LOOK_AGAIN)

    def status(self, groups: Iterable[str] = ()) -> list[GroupStatus]:
        """Of these groups, or of all that run or were ordered something."""
        board = self._board()
        known = {group for group, _ in (*board.commands, *board.reports)}
        return [self._status(group, board) for group in groups or sorted(known)]

    def close(self) -> None:
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _board(self) -> Board:
        session_of(self._admin).look_again()
        return self._control.read(self._admin)

    def _status(self, group: str, board: Board) -> GroupStatus:
        running = board.of(group, time.time())
        account = Notes(self._connection, group).read(self._admin)
        reports = [rule for report in running for rule in report.rules]
        names = dict.fromkeys(
            [each.name for each in reports]
            + [rule for each, rule in board.commands if each == group]
            + [drop.rule for drop in account.left]
        )
        rules = []
        for name in names:
            mine = [each for each in reports if each.name == name]
            newest = max(mine, key=lambda each: each.since, default=None)
            states: dict[str, int] = {}
            for each in mine:
                states[each.state] = states.get(each.state, 0) + 1
            left = sum(len(spans) for drop, spans in account.left.items() if drop.rule == name)
            rules.append(
                RuleStatus(
                    name,
                    None if newest is None else newest.does,
                    None if newest is None else newest.handler,
                    None if newest is None else newest.when,
                    states,
                    None if newest is None else newest.since,
                    None if newest is None else newest.why,
                    board.commands.get((group, name)),
                    account.total(notes.DROPPED, name),
                    left,
                )
            )
        return GroupStatus(group, tuple(running), tuple(rules), account)


def _obeys(report: Report, commands: Sequence[Command]) -> bool:
    states = {rule.name: rule.state for rule in report.rules}
    return all(
        each.rule not in states or states[each.rule] in _EXPECTED[each.order]
        for each in commands
        if each.group == report.group
    )

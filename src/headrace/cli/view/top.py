"""How `headrace top` looks: one table of brokers, topics, groups or clients, sorted by one of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from headrace.cli.parsing import times
from headrace.cli.view import output
from headrace.cli.view.lag import STYLES, rate

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.client.activity import Activity, TopicActivity


class Subject(StrEnum):
    BROKERS = "brokers"
    TOPICS = "topics"
    GROUPS = "groups"
    CLIENTS = "clients"


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    value: Callable[[Any], Any]
    """What it is sorted by; None comes last."""
    show: Callable[[Any], object] = lambda value: value
    text: bool = False
    """To the left, and sorted from A to Z."""


def _bytes(count: float | None) -> str | None:
    return None if count is None else output.size(round(count))


def _number(count: int | None) -> str | None:
    return None if count is None else f"{count:,}"


def _topic_state(topic: TopicActivity) -> str:
    if topic.offline:
        return f"{topic.offline} offline"
    return f"{topic.under_replicated} under-replicated" if topic.under_replicated else "ok"


COLUMNS: dict[Subject, tuple[Column, ...]] = {
    Subject.BROKERS: (
        Column("BROKER", lambda each: each.broker),
        Column("ADDRESS", lambda each: each.address, text=True),
        Column("ROLE", lambda each: "controller" if each.controller else None, text=True),
        Column("LEADERS", lambda each: each.leaders, _number),
        Column("REPLICAS", lambda each: each.replicas, _number),
        Column("RECORDS IN/S", lambda each: each.records_in, rate),
        Column("IN/S", lambda each: each.bytes_in, _bytes),
        Column("OUT/S", lambda each: each.bytes_out, _bytes),
        Column("REQUESTS/S", lambda each: each.requests, rate),
        Column("CONNECTIONS", lambda each: each.connections, _number),
        Column("SIZE", lambda each: each.size, _bytes),
    ),
    Subject.TOPICS: (
        Column("TOPIC", lambda each: each.topic, text=True),
        Column("PARTITIONS", lambda each: each.partitions, _number),
        Column("STATE", _topic_state, text=True),
        Column("RECORDS IN/S", lambda each: each.records_in, rate),
        Column("RECORDS OUT/S", lambda each: each.records_out, rate),
        Column("IN/S", lambda each: each.bytes_in, _bytes),
        Column("OUT/S", lambda each: each.bytes_out, _bytes),
        Column("LAG", lambda each: each.lag, _number),
        Column("SIZE", lambda each: each.size, _bytes),
    ),
    Subject.GROUPS: (
        Column("GROUP", lambda each: each.group_id, text=True),
        Column("STATE", lambda each: each.state.value, text=True),
        Column("MEMBERS", lambda each: each.members, _number),
        Column("LAG", lambda each: each.records, _number),
        Column("BEHIND", lambda each: each.seconds, times.show_seconds),
        Column("IN/S", lambda each: each.rate_in, rate),
        Column("OUT/S", lambda each: each.rate_out, rate),
        Column("CAUGHT UP IN", lambda each: each.seconds_to_catch_up if each.records else None, times.show_seconds),
        Column("LOSS IN", lambda each: each.seconds_until_loss, times.show_seconds),
    ),
    Subject.CLIENTS: (
        Column("CLIENT ID", lambda each: each.client_id, text=True),
        Column("PRINCIPAL", lambda each: each.principal, text=True),
        Column("ADDRESS", lambda each: each.address, text=True),
        Column("SOFTWARE", lambda each: each.software, text=True),
        Column("CONNECTIONS", lambda each: each.connections, _number),
        Column("REQUESTS/S", lambda each: each.requests, rate),
        Column("IN/S", lambda each: each.bytes_in, _bytes),
        Column("OUT/S", lambda each: each.bytes_out, _bytes),
        Column("GROUPS", lambda each: ",".join(each.groups) or None, text=True),
        Column("PARTITIONS", lambda each: each.partitions, _number),
        Column("RECORDS OUT/S", lambda each: each.records_out, rate),
    ),
}  # fmt: skip

FIRST_SORT = {
    Subject.BROKERS: "BROKER",
    Subject.TOPICS: "RECORDS IN/S",
    Subject.GROUPS: "LAG",
    Subject.CLIENTS: "REQUESTS/S",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """What is shown, as the keys have chosen it."""

    subject: Subject = Subject.TOPICS
    sort: str = FIRST_SORT[Subject.TOPICS]
    reverse: bool = False
    internal: bool = False

    def of(self, subject: Subject) -> Screen:
        return replace(self, subject=subject, sort=FIRST_SORT[subject], reverse=False)

    def pressed(self, key: str) -> Screen:
        """Another key changes nothing."""
        by_key = {name[0]: name for name in Subject} | {
            str(number): name for number, name in enumerate(Subject, 1)
        }
        if key in by_key:
            return self.of(by_key[key])
        if key == "s":
            titles = [column.title for column in COLUMNS[self.subject]]
            return replace(self, sort=titles[(titles.index(self.sort) + 1) % len(titles)], reverse=False)
        if key == "r":
            return replace(self, reverse=not self.reverse)
        return replace(self, internal=not self.internal) if key == "i" else self


def rows(activity: Activity, screen: Screen) -> list[Any]:
    """Numbers from the largest to the smallest, text from A to Z, what is not known last; or the other way round."""
    found: list[Any] = list(getattr(activity, screen.subject))
    if screen.subject is Subject.TOPICS and not screen.internal:
        found = [each for each in found if not each.internal and not each.topic.startswith("__headrace_")]
    column = next(each for each in COLUMNS[screen.subject] if each.title == screen.sort)
    known = [each for each in found if column.value(each) is not None]
    known.sort(key=column.value, reverse=screen.reverse == _rising(column))
    return known + [each for each in found if column.value(each) is None]


def columns(subject: Subject, found: Sequence[Any]) -> list[Column]:
    """Those that have something to show: who serves no /metrics or /clients has fewer."""
    every = COLUMNS[subject]
    return [
        column
        for column in every
        if column is every[0] or any(column.value(each) is not None for each in found)
    ]


def _rising(column: Column) -> bool:
    return column.text or column.title == "BROKER"


def plain(activity: Activity, screen: Screen) -> str:
    found = rows(activity, screen)
    chosen = columns(screen.subject, found)
    right = [column.title for column in chosen if not column.text]
    shown = [[column.show(column.value(row)) for column in chosen] for row in found]
    return "\n".join(output.columns([column.title for column in chosen], shown, right))


def drawn(activity: Activity, screen: Screen, title: str, height: int) -> Any:
    """For a terminal of this height."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    found = rows(activity, screen)
    chosen = columns(screen.subject, found)
    for column in chosen:
        mark = (
            {True: "▲", False: "▼"}[screen.reverse != _rising(column)] if column.title == screen.sort else ""
        )
        table.add_column(column.title + mark, justify="left" if column.text else "right", no_wrap=True)
    problems = activity.problems[:2]
    room = max(1, height - 5 - len(problems))
    for row in found[:room]:
        values = (column.show(column.value(row)) for column in chosen)
        shown = (output.MISSING if value is None else str(value) for value in values)
        table.add_row(*shown, style=_style(screen.subject, row))
    more = f"… {len(found) - room:,} more" if len(found) > room else ""
    keys = " · ".join(
        (
            *(f"{name[0]} {name}" for name in Subject),
            f"s sort ({screen.sort})",
            "r reverse",
            f"i {'hide' if screen.internal else 'show'} internal topics",
            "q quit",
        )
    )
    lines: list[RenderableType] = [Text(title, style="bold", no_wrap=True), table, Text(more, style="dim")]
    lines += [Text(problem, style="red", no_wrap=True) for problem in problems]
    return Group(*lines, Text(keys, style="dim", no_wrap=True))


def headline(activity: Activity, bootstrap: str) -> str:
    counts: Sequence[tuple[int, str]] = (
        (len(activity.brokers), "broker"),
        (len(activity.topics), "topic"),
        (len(activity.groups), "group"),
        (len(activity.clients), "client"),
    )
    rates = "" if activity.seconds is not None else " · rates come with the next look"
    return " · ".join([bootstrap, *(output.count(number, what) for number, what in counts)]) + rates


def _style(subject: Subject, row: Any) -> str | None:
    if subject is Subject.GROUPS:
        return STYLES.get(row.state.value)
    if subject is Subject.TOPICS:
        return "bold red" if row.offline else "yellow" if row.under_replicated else None
    return None

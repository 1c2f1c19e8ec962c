"""Reads alerts.toml and finds every mistake in it at once, each with its line."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from headrace.link.errors import SettingsError
from headrace.link.references import Resolver
from headrace.nearest import nearest
from headrace.watch.alerts import values
from headrace.watch.alerts.conditions import KINDS, ClusterAway, Condition
from headrace.watch.alerts.declared import (
    DEFAULT_REPEAT,
    EXPIRING_REPEAT,
    SEVERITIES,
    CommandReceiver,
    Declaration,
    LogReceiver,
    Receiver,
    Rule,
    TopicReceiver,
    WebhookReceiver,
)
from headrace.watch.alerts.lines import Lines
from headrace.watch.alerts.values import Reader

_GENERAL: Mapping[str, Reader] = {
    "interval": values.some_time,
    "window": values.some_time,
    "failover": values.some_time,
    "repeat": values.some_time,
    "receivers": values.texts,
    "cluster": values.text,
}
_RULE: Mapping[str, Reader] = {
    "name": values.name,
    "kind": values.one_of(*KINDS),
    "for": values.duration,
    "severity": values.one_of(*SEVERITIES),
    "labels": values.table,
    "runbook": values.url,
    "receivers": values.texts,
    "repeat": values.some_time,
}
_EVERY_RECEIVER: Mapping[str, Reader] = {
    "name": values.name,
    "kind": values.one_of("log", "webhook", "command", "topic"),
    "repeat": values.some_time,
}
_TRIED: Mapping[str, Reader] = {"timeout": values.some_time, "retry_for": values.some_time}
_RECEIVERS: Mapping[str, tuple[type[Receiver], Mapping[str, Reader], tuple[str, ...]]] = {
    "log": (LogReceiver, {"format": values.one_of("text", "json")}, ()),
    "webhook": (
        WebhookReceiver,
        {
            "url": values.url,
            "shape": values.one_of("generic", "slack", "alertmanager"),
            "secret": values.text,
            "headers": values.table,
            **_TRIED,
        },
        ("url",),
    ),
    "command": (CommandReceiver, {"command": values.texts, **_TRIED}, ("command",)),
    "topic": (TopicReceiver, {"topic": values.text, **_TRIED}, ("topic",)),
}
"""By kind: what it becomes, what can be said in it, and what must be."""
_MAY_BE_SECRET = {"url", "secret", "headers", "command", "topic"}


@dataclass(frozen=True, slots=True)
class Mistake:
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Mistakes(Exception):
    """The file cannot be used."""

    def __init__(self, found: list[Mistake]) -> None:
        super().__init__("\n".join(map(str, found)))
        self.found = found


def load(path: Path) -> Declaration:
    """Raises `Mistakes` with every one there is."""
    try:
        content = path.read_text()
    except OSError as error:
        raise Mistakes([Mistake(str(path), 1, f"it cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise Mistakes([Mistake(str(path), 1, "it is not UTF-8 text")]) from None
    return read(content, str(path))


def read(content: str, file: str) -> Declaration:
    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(where[1]) if where else len(content.splitlines()) or 1
        raise Mistakes([Mistake(file, line, f"it is not TOML: {error}")]) from None
    return _Reading(document, Lines(content), file).declaration()


class _Reading:
    """One pass over a file; mistakes are collected on the way."""

    def __init__(self, document: dict[str, Any], lines: Lines, file: str) -> None:
        self._document = document
        self._lines = lines
        self._file = file
        self._mistakes: list[Mistake] = []
        self._resolver = Resolver({})

    def declaration(self) -> Declaration:
        for name in self._document:
            if name not in ("alerts", "rule", "receiver"):
                near = _did_you_mean(name, ("alerts", "rule", "receiver"))
                self._mistake(f"{name} is not known here{near}", name)
        for name in ("rule", "receiver"):
            if not self._is_list_of_tables(self._document.get(name, [])):
                self._mistake(f"{name} is a list of tables: write [[{name}]] above each", name)
        general = self._table("alerts", 0, self._document.get("alerts", {}), _GENERAL)
        receivers = self._receivers()
        default = general.get("receivers") or (tuple(receivers) if receivers else ("log",))
        if "receivers" in general:
            self._known_receivers(default, "alerts", 0)
        rules = self._rules(default, general.get("repeat", DEFAULT_REPEAT))
        if "log" not in receivers and any("log" in each.receivers for each in rules):
            receivers["log"] = LogReceiver("log")
        if general.get("failover", 10.0) < 6:
            self._mistake("failover takes at least 6s, the least that brokers allow", "alerts", 0, "failover")
        if self._mistakes:
            raise Mistakes(sorted(self._mistakes, key=lambda each: each.line))
        settings = {
            key: general[key] for key in ("interval", "window", "failover", "cluster") if key in general
        }
        return Declaration(rules=tuple(rules), receivers=receivers, **settings)

    def _receivers(self) -> dict[str, Receiver]:
        found: dict[str, Receiver] = {}
        self._named_once("receiver")
        for number, table in enumerate(self._tables("receiver")):
            kind = table.get("kind")
            made, own, needed = _RECEIVERS.get(kind if isinstance(kind, str) else "", (None, {}, ()))
            if made is None:
                # Its own keys cannot be judged without a kind.
                self._table(
                    "receiver",
                    number,
                    {k: v for k, v in table.items() if k in _EVERY_RECEIVER},
                    _EVERY_RECEIVER,
                    ("name", "kind"),
                )
                continue
            given = self._table(
                "receiver",
                number,
                self._resolved(number, table),
                {**_EVERY_RECEIVER, **own},
                ("name", "kind", *needed),
            )
            if not {"name", *needed} <= given.keys():
                continue
            given.pop("kind", None)
            if given.get("shape") == "alertmanager":
                given.setdefault("repeat", EXPIRING_REPEAT)
            found[given["name"]] = made(**given)
        return found

    def _rules(self, default: tuple[str, ...], repeat: float) -> list[Rule]:
        found: list[Rule] = []
        self._named_once("rule")
        for number, table in enumerate(self._tables("rule")):
            rule = self._rule(number, table, default, repeat)
            if rule is None:
                continue
            if isinstance(rule.condition, ClusterAway) and any(
                isinstance(each.condition, ClusterAway) for each in found
            ):
                self._mistake("one rule of the kind cluster-away is enough", "rule", number, "kind")
            found.append(rule)
        if not any(isinstance(each.condition, ClusterAway) for each in found):
            found.append(Rule("cluster-away", ClusterAway(), 60.0, "critical", (), None, default, repeat))
        return found

    def _rule(
        self, number: int, table: dict[str, Any], default: tuple[str, ...], repeat: float
    ) -> Rule | None:
        kind = table.get("kind")
        condition = KINDS.get(kind) if isinstance(kind, str) else None
        if condition is None:
            self._table(
                "rule", number, {k: v for k, v in table.items() if k in _RULE}, _RULE, ("name", "kind")
            )
            return None
        fields = {each.name: each for each in dataclasses.fields(condition)}
        own = {name: cast(Reader, each.metadata["reader"]) for name, each in fields.items()}
        needed = [name for name, each in fields.items() if each.default is dataclasses.MISSING]
        given = self._table("rule", number, table, {**_RULE, **own}, ("name", "kind", *needed))
        self._known_receivers(given.get("receivers", ()), "rule", number)
        if not {"name", *needed} <= given.keys():
            return None
        made: Condition = condition(**{name: given[name] for name in own if name in given})
        return Rule(
            name=given["name"],
            condition=made,
            wait=given.get("for", 60.0 if isinstance(made, ClusterAway) else 0.0),
            severity=given.get("severity", "warning"),
            labels=given.get("labels", ()),
            runbook=given.get("runbook"),
            receivers=given.get("receivers", default),
            repeat=given.get("repeat", repeat),
        )

    def _tables(self, name: str) -> list[dict[str, Any]]:
        found = self._document.get(name, [])
        return found if self._is_list_of_tables(found) else []

    @staticmethod
    def _is_list_of_tables(found: Any) -> bool:
        return isinstance(found, list) and all(isinstance(each, dict) for each in found)

    def _table(
        self, table: str, number: int, given: Any, known: Mapping[str, Reader], needed: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The values that can be read; the others become mistakes."""
        if not isinstance(given, dict):
            self._mistake(f"{table} is a table: write [{table}] above its settings", table)
            return {}
        found = {}
        for key, value in given.items():
            if key not in known:
                self._mistake(f"{key} is not known here{_did_you_mean(key, known)}", table, number, key)
                continue
            try:
                found[key] = known[key](value)
            except ValueError as error:
                self._mistake(f"{key} {error}", table, number, key)
        for key in needed:
            if key not in given:
                self._mistake(f"{key} is missing", table, number)
        return found

    def _resolved(self, number: int, table: dict[str, Any]) -> dict[str, Any]:
        """A receiver with its references replaced, where secrets belong: none of their readers repeats a value."""

        def resolve(key: str, value: Any) -> Any:
            if isinstance(value, str):
                return self._resolver.value(key, value)
            if isinstance(value, list):
                return [resolve(key, each) for each in value]
            if isinstance(value, dict):
                return {name: resolve(f"{key}.{name}", each) for name, each in value.items()}
            return value

        found = dict(table)
        for key in _MAY_BE_SECRET & table.keys():
            try:
                found[key] = resolve(key, table[key])
            except SettingsError as error:
                self._mistake(str(error).rstrip("."), "receiver", number, key)
                # One mistake is enough for it: what follows must not complain that it is missing or no URL.
                found[key] = "https://unresolved" if key == "url" else "unresolved"
        return found

    def _named_once(self, table: str) -> None:
        names: set[str] = set()
        for number, each in enumerate(self._tables(table)):
            name = each.get("name")
            if isinstance(name, str):
                if name in names:
                    self._mistake("another has this name already", table, number, "name")
                names.add(name)

    def _known_receivers(self, named: tuple[str, ...], table: str, number: int) -> None:
        declared = (each.get("name") for each in self._tables("receiver"))
        known = [*(name for name in declared if isinstance(name, str)), "log"]
        for each in named:
            if each not in known:
                near = _did_you_mean(each, known)
                self._mistake(f"there is no receiver {each}{near}", table, number, "receivers")

    def _mistake(self, text: str, table: str, number: int = 0, key: str | None = None) -> None:
        where = ""
        if table in ("rule", "receiver") and isinstance(self._document.get(table), list):
            entry = self._document[table][number] if number < len(self._document[table]) else {}
            named = entry.get("name") if isinstance(entry, dict) else None
            where = f"{table} {named}: " if isinstance(named, str) else f"{table} {number + 1}: "
        self._mistakes.append(Mistake(self._file, self._lines.of(table, number, key), where + text))


def _did_you_mean(name: str, known: Any) -> str:
    near = nearest(name, known)
    return f"; did you mean '{near}'?" if near else f"; it takes {', '.join(known)}"

"""A connector's file: TOML with ``[topic]`` and one of ``[source]`` and ``[sink]``, checked as a whole."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from headrace.connectors import catalogue
from headrace.connectors.base import Connector
from headrace.connectors.errors import ConfigError
from headrace.connectors.settings import check, flat
from headrace.connectors.topic import RunSettings, TopicIn, TopicOut
from headrace.link.contexts import properties_of
from headrace.nearest import nearest

T = TypeVar("T")
_TABLES = ("name", "topic", "source", "sink", "run", "spark")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Declaration:
    """What a file declares: a connector and its topic."""

    name: str
    type: str
    topic: TopicIn | TopicOut
    connector: Connector
    run: RunSettings
    spark: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    """None for one declared in a program."""


def load(path: Path, *, bootstrap: str | None = None) -> Declaration:
    """Read and check a file; ``bootstrap`` stands in for a missing ``topic.bootstrap``. Modules beside the file can be
    imported from then on, because a connector's class may be there."""
    _make_importable(path.absolute().parent)
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError([f"it cannot be read: {error.strerror}"]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError([f"it is not TOML: {error}"]) from None
    return declare(document, default_name=path.stem, bootstrap=bootstrap, file=path)


def declare(
    document: Mapping[str, Any],
    *,
    default_name: str,
    bootstrap: str | None = None,
    file: Path | None = None,
) -> Declaration:
    """Check what a file holds, or what a program would write into one."""
    problems: list[str] = []
    document = _with_environment(document, problems)
    if problems:
        raise ConfigError(problems)
    problems += [f"{name} is not known here{_near(name)}" for name in document if name not in _TABLES]
    name = document.get("name", default_name)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problems.append(f"name is {name!r}: it must be letters, digits, '.', '_' and '-', at most 100")
    tables = {
        table: _table(document, table, problems) for table in ("topic", "source", "sink", "run", "spark")
    }
    if ("source" in document) == ("sink" in document):
        problems.append(
            "one of [source] and [sink] must be there: a source fills the topic, a sink empties it"
        )
        raise ConfigError(problems)
    if "topic" not in document:
        problems.append('[topic] is missing: it names the topic, as in name = "orders"')
    direction: catalogue.Direction = "source" if "source" in document else "sink"
    if bootstrap is not None and "bootstrap" not in tables["topic"]:
        _put_cluster(bootstrap, tables["topic"])
    kind: type[TopicIn | TopicOut] = TopicOut if direction == "source" else TopicIn
    topic = _try(problems, lambda: check(kind, tables["topic"], "topic", f"a {direction}'s topic"))
    run = _try(problems, lambda: check(RunSettings, tables["run"], "run", "[run]"))
    connector = _try(problems, lambda: _connector(direction, str(name), tables[direction]))
    if problems or topic is None or run is None or connector is None:
        raise ConfigError(problems)
    return Declaration(
        name=str(name),
        type=str(tables[direction]["type"]),
        topic=topic,
        connector=connector,
        run=run,
        spark={
            key if key.startswith("spark.") else f"spark.{key}": value for key, value in flat(tables["spark"])
        },
        file=file,
    )


def _put_cluster(bootstrap: str, topic: dict[str, Any]) -> None:
    """The brokers for a file that names none, with the settings of the context that they come from, if any."""
    topic["bootstrap"] = str(bootstrap)
    client = topic.get("client", {})
    if isinstance(client, dict) and (settings := properties_of(bootstrap)):
        topic["client"] = {**settings, **dict(flat(client))}


def _make_importable(directory: Path) -> None:
    """Here and, through the environment, for local workers."""
    if (entry := str(directory)) not in sys.path:
        sys.path.append(entry)
        known = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = f"{known}{os.pathsep}{entry}" if known else entry


def _connector(direction: catalogue.Direction, name: str, table: dict[str, Any]) -> Connector:
    kind = table.get("type")
    if not isinstance(kind, str):
        names = ", ".join(sorted(catalogue.known(direction)))
        raise ConfigError([f"{direction}.type is missing: choose {names}, or give module:Class"])
    found = catalogue.find(direction, kind)
    given = {key: value for key, value in table.items() if key != "type"}
    return found(name, check(found.Settings, given, direction, f"the {kind} {direction}"))


def _table(document: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    table = document.get(name, {})
    if isinstance(table, dict):
        return dict(table)
    problems.append(f"{name} is {table!r}: it must be a table, written as [{name}]")
    return {}


def _try(problems: list[str], make: Callable[[], T]) -> T | None:
    try:
        return make()
    except ConfigError as error:
        problems += error.problems
        return None


def _with_environment(value: Any, problems: list[str], where: str = "") -> Any:
    """``${NAME}`` in any text is the environment's, so that a password need not be in the file."""
    if isinstance(value, dict):
        return {
            key: _with_environment(inner, problems, f"{where}.{key}" if where else key)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_with_environment(inner, problems, where) for inner in value]
    if not isinstance(value, str):
        return value

    def look_up(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            problems.append(f"{where} asks for ${{{match[1]}}}, which is not set in the environment")
        return found or ""

    return _VARIABLE.sub(look_up, value)


def _near(name: str) -> str:
    near = nearest(name, _TABLES, cutoff=0.5)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(_TABLES)}"

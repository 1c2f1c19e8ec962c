"""Prometheus' text format and OpenMetrics: families of samples in, lines of text out. Labels are written once and kept by the callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

T = TypeVar("T")

AT_ONCE = 64
"""Lines that are made together; they take some ten microseconds."""

COUNTER, GAUGE, SUMMARY, HISTOGRAM = "counter", "gauge", "summary", "histogram"


@dataclass(slots=True)
class Family:
    """Samples of one name. `lines` are whole lines, made as they are asked for; an empty one only gives other work a turn."""

    name: str
    """Of a counter with its `_total`."""
    kind: str
    help: str
    lines: Iterable[str]


def labels(**values: object) -> str:
    """`{name="value",…}`, escaped."""
    return "{" + ",".join(f'{name}="{escaped(str(value))}"' for name, value in values.items()) + "}"


def escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def one(name: str, kind: str, help_: str, value: float, label: str = "") -> Family:
    """A family with a single sample."""
    return Family(name, kind, help_, (f"{name}{label} {value}\n",))


def several(name: str, kind: str, help_: str, samples: Iterable[tuple[str, float]]) -> Family:
    """A family with a sample for each (labels, value)."""
    return Family(name, kind, help_, (f"{name}{label} {value}\n" for label, value in samples))


def chunks(name: str, rows: Sequence[tuple[str, T]], value: Callable[[T], float]) -> Iterator[str]:
    """The lines of a family with very many samples, some at a time: one by one, each would cost three times as much."""
    for start in range(0, len(rows), AT_ONCE):
        yield "".join([f"{name}{label} {value(each)}\n" for label, each in rows[start : start + AT_ONCE]])


def render(families: Iterable[Family], content_type: str) -> Iterator[str]:
    """Pieces of the page. A family without samples leaves no trace."""
    open_metrics = content_type == OPEN_METRICS
    for family in families:
        header = _header(family, open_metrics)
        for line in family.lines:
            if line and header:
                yield header
                header = ""
            yield line
    if open_metrics:
        yield "# EOF\n"


def _header(family: Family, open_metrics: bool) -> str:
    name = family.name.removesuffix("_total") if open_metrics and family.kind == COUNTER else family.name
    return f"# HELP {name} {escaped(family.help)}\n# TYPE {name} {family.kind}\n"


def negotiated(accept: str) -> str:
    """OpenMetrics for a client that prefers it, as Prometheus does."""
    best, chosen = 0.0, TEXT
    for part in accept.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
        if kind == "application/openmetrics-text" and quality > best:
            best, chosen = quality, OPEN_METRICS
        elif kind in ("text/plain", "text/*", "*/*") and quality > best:
            best, chosen = quality, TEXT
    return chosen

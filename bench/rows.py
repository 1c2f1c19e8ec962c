"""The figures of a run: samples become rows, rows are judged against the bars that Headrace has to reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

Better = Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar for Headrace: a limit on its figure or, with `times`, on its figure divided by another system's.

    That is the one its row is compared with, unless the bar names its own.
    """

    limit: float
    side: Literal["at least", "at most"]
    times: bool = True
    against: str = ""

    def met(self, headrace: float, other: float | None) -> bool | None:
        """Whether it is met; None when there is nothing to compare with."""
        if self.times and not other:
            return None
        value = headrace / other if self.times and other else headrace
        return value >= self.limit if self.side == "at least" else value <= self.limit

    def text(self, unit: str) -> str:
        sign = "≥" if self.side == "at least" else "≤"
        if not self.times:
            return f"{sign} {self.limit:g} {unit}"
        return f"{sign} {self.limit:g} ×" + (f" {self.against}" if self.against else "")


@dataclass(slots=True)
class Figure:
    """One system's samples of one row. CPU and memory are the broker's, medians over the rounds.

    `version` is the system's: a ratio belongs to the versions that were measured.
    """

    samples: list[float]
    cpu_seconds: float | None = None
    rss_mb: float | None = None
    version: str = ""

    @property
    def median(self) -> float:
        return median(self.samples)


@dataclass(slots=True)
class Row:
    """One line of a table: what was measured, in which unit, for each system. `work` is what
    its CPU-seconds paid for, `against` the system Headrace is compared with.
    """

    id: str
    title: str
    unit: str
    better: Better
    work: str
    bars: list[Bar] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    against: str = "kafka"

    def ratio(self) -> float | None:
        """Headrace's figure divided by the other's."""
        if "headrace" not in self.figures or self.against not in self.figures:
            return None
        other = self.figures[self.against].median
        return self.figures["headrace"].median / other if other else None

    def advantage(self) -> float | None:
        """How many times better Headrace is; below 1 it is worse."""
        ratio = self.ratio()
        if not ratio:
            return None
        return ratio if self.better == "more" else 1 / ratio

    def verdict(self) -> bool | None:
        """Whether every bar is met; None without bars or without the figures to judge."""
        if not self.bars or "headrace" not in self.figures:
            return None
        headrace = self.figures["headrace"].median
        others = [self.figures.get(bar.against or self.against) for bar in self.bars]
        verdicts = [
            bar.met(headrace, None if other is None else other.median)
            for bar, other in zip(self.bars, others, strict=True)
        ]
        return None if None in verdicts else all(verdicts)

    def bars_text(self) -> str:
        return ", ".join(bar.text(self.unit) for bar in self.bars)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        fields = dict(data)
        fields["bars"] = [Bar(**bar) for bar in fields["bars"]]
        fields["figures"] = {system: Figure(**figure) for system, figure in fields["figures"].items()}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: the figure, and what it cost the broker, already brought to the row's unit of work."""

    value: float
    cpu_seconds: float | None = None
    rss_mb: float | None = None


def figure(samples: Iterable[Sample]) -> Figure:
    """The samples of one system as the row keeps them."""
    taken = list(samples)
    cpu = [sample.cpu_seconds for sample in taken if sample.cpu_seconds is not None]
    rss = [sample.rss_mb for sample in taken if sample.rss_mb is not None]
    return Figure(
        samples=[sample.value for sample in taken],
        cpu_seconds=median(cpu) if cpu else None,
        rss_mb=median(rss) if rss else None,
    )

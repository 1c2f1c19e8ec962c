"""Expectations: what must hold for every row, and what becomes of a row for which it does not.

A condition that is NULL for a row does not hold for it, as in a WHERE clause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.pipelines.errors import PipelineError

FAILED = "Headrace stops this flow: "
"""How the message of a row that may not be left out begins."""

Otherwise = Literal["dead_letter", "drop", "keep", "fail"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition in SQL over the row's columns, under a name that people will read in reports."""

    name: str
    condition: str
    otherwise: Otherwise = "dead_letter"

    @property
    def holds(self) -> Column:
        return F.coalesce(F.expr(self.condition).cast("boolean"), F.lit(False))

    @property
    def reason(self) -> str:
        return f"expected {self.name}: {self.condition}"


def expect(name: str, condition: str, *, otherwise: Otherwise = "dead_letter") -> Expectation:
    """Expect ``condition`` of every row of a topic.

    ``otherwise`` says what becomes of a row that breaks it: ``dead_letter`` sends it to the dead-letter
    topic with the reason, ``drop`` leaves it out and counts it, ``keep`` lets it pass and counts it, and
    ``fail`` stops the flow.
    """
    if otherwise not in get_args(Otherwise):
        known = ", ".join(get_args(Otherwise))
        raise PipelineError(f"expect('{name}') takes otherwise={known}, not '{otherwise}'.")
    return Expectation(name, condition, otherwise)


def of_kind(expectations: Iterable[Expectation], kind: Otherwise) -> list[Expectation]:
    return [each for each in expectations if each.otherwise == kind]


def broken(expectations: Iterable[Expectation]) -> Column:
    """The reason of the first dead-letter expectation that a row breaks; NULL for a good row."""
    reasons = [F.when(~each.holds, F.lit(each.reason)) for each in of_kind(expectations, "dead_letter")]
    return F.coalesce(*reasons) if reasons else F.lit(None).cast("string")


def enforced(rows: DataFrame, expectations: tuple[Expectation, ...], observation: str | None) -> DataFrame:
    """The rows without those to drop; counts under ``observation`` the rows that break each expectation."""
    counted = [each for each in expectations if each.otherwise != "fail"]
    if counted and observation is not None:
        counts = [F.count_if(~each.holds).alias(f"{each.otherwise} {each.name}") for each in counted]
        rows = rows.observe(observation, counts[0], *counts[1:])
    for each in of_kind(expectations, "drop"):
        rows = rows.where(each.holds)
    for each in of_kind(expectations, "fail"):
        rows = rows.where(or_fail(each.holds, F.lit(each.reason)))
    return rows


def or_fail(condition: Column, reason: Column) -> Column:
    """The condition, for a filter that stops the query with the reason rather than leave a row out."""
    failure = F.raise_error(F.concat(F.lit(FAILED), reason)).cast("boolean")
    return F.when(condition, F.lit(True)).otherwise(failure)

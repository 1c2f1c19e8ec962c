"""What a checkpoint depends on: a query's sources and the shape of its state, in words a person can compare.

Spark refuses, or worse ignores, some changes of a query against its checkpoint; these are reported beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypedDict

from pyspark.sql import DataFrame

from headrace.client.degrade.replayed import topic_of

_ID = re.compile(r"#\d+L?|-T\d+ms")
_WINDOWS = ("spark.timeWindow", "spark.sessionWindow")
_DURATION = re.compile(r"(?:\b[\d.]+ (?:year|month|day|hour|minute|second)s? ?)+|\b\d{4,}\b")


STANDS_FOR = "headrace.stands.for"
"""An option of a stream that is only looked at: the source that it takes the place of, as `_source` names it."""


class Fingerprint(TypedDict):
    sources: list[str]
    state: list[str]  # one phrase for each operator that keeps state
    kept: list[str]  # and the columns that each of them keeps, with their types


def fingerprint(rows: DataFrame) -> Fingerprint:
    analyzed = rows._jdf.queryExecution().analyzed()
    nodes = list(_nodes(analyzed))
    # What a join keeps depends on what is used after it, which the optimizer finds out.
    optimizer = rows.sparkSession._jsparkSession.sessionState().optimizer()
    joins = (node for node in _nodes(optimizer.execute(analyzed)) if _joins_streams(node))
    stateful = [(node, phrase) for node in nodes if node.isStreaming() and (phrase := _state(node))]
    return {
        "sources": [_source(node) for node in nodes if _kind(node).startswith("StreamingRelation")],
        "state": [phrase for _, phrase in stateful],
        "kept": [_kept(next(joins, node) if _joins_streams(node) else node) for node, _ in stateful],
    }


def difference(before: Fingerprint, now: Fingerprint) -> str | None:
    """Why a query cannot continue from a checkpoint; None when it can."""
    if before["sources"] != now["sources"]:
        return f"it reads {_list(now['sources'])} now, and read {_list(before['sources'])} before"
    if before["state"] != now["state"]:
        return f"it {_list(now['state'], 'keeps no state')} now, and {_list(before['state'], 'kept no state')} before"
    for was, is_now in zip(before["kept"], now["kept"], strict=True):
        if was != is_now:
            return f"its state keeps {is_now} now, and kept {was} before"
    return None


def _state(node: Any) -> str | None:
    kind = _kind(node)
    if kind == "Aggregate":
        keys = [_key(each, node) for each in _each(node.groupingExpressions())]
        return f"groups by ({', '.join(keys)}) to {', '.join(map(_text, _functions(node)))}"
    if kind in ("Deduplicate", "DeduplicateWithinWatermark"):
        return f"drops duplicates of ({', '.join(sorted(map(_text, _each(node.keys()))))})"
    if _joins_streams(node):
        condition = _text(node.condition().get()) if node.condition().isDefined() else "everything"
        return f"joins two streams ({node.joinType().sql().lower()}) on {condition}"
    if "WithState" in kind:
        return f"keeps state of its own by ({', '.join(map(_text, _grouping(node)))})"
    return None


def _kept(node: Any) -> str:
    kind = _kind(node)
    if kind == "Aggregate":
        return _typed([*_each(node.groupingExpressions()), *_functions(node)])
    if kind in ("Deduplicate", "DeduplicateWithinWatermark"):
        return ", ".join(sorted(_typed([each]) for each in _each(node.keys())))
    if kind == "Join":
        return f"{_typed(_each(node.left().output()))} beside {_typed(_each(node.right().output()))}"
    return _typed(_grouping(node))


def _joins_streams(node: Any) -> bool:
    return _kind(node) == "Join" and bool(node.left().isStreaming() and node.right().isStreaming())


def _functions(aggregate: Any) -> list[Any]:
    keys = {_text(each) for each in _each(aggregate.groupingExpressions())}
    return [each for each in _each(aggregate.aggregateExpressions()) if _text(each) not in keys]


def _key(expression: Any, aggregate: Any) -> str:
    """What is grouped by; of a window its length as well, which a node below has worked out already."""
    text = _text(expression)
    if _kind(expression) != "AttributeReference" or not any(map(expression.metadata().contains, _WINDOWS)):
        return text
    for node in _nodes(aggregate.child()):
        if any(each.exprId().equals(expression.exprId()) for each in _each(node.output())) and (
            found := set(_DURATION.findall(_ID.sub("", node.expressions().mkString(" "))))
        ):
            return f"{text} of {' and '.join(sorted(map(_duration, found)))}"
    return text


def _duration(text: str) -> str:
    return f"{int(text) / 1_000_000:g} s" if text.isdecimal() else text.strip()


def _grouping(node: Any) -> list[Any]:
    """What a stateful function is called for: the grouping attributes, or, in Python, the first columns of its input."""
    fields = {node.productElementName(number): number for number in range(node.productArity())}
    if "groupingAttributes" in fields:
        return _each(node.productElement(fields["groupingAttributes"]))
    count = node.productElement(fields["groupingAttributesLen"])
    return _each(node.children().apply(0).output())[:count]


def _source(node: Any) -> str:
    if _kind(node) != "StreamingRelationV2":
        stands_for = node.dataSource().options().get(STANDS_FOR)
        return str(stands_for.get() if stands_for.isDefined() else node.sourceName())
    options = node.extraOptions()
    # What a replay brings back comes and goes with the rules, and is the same topic in another place.
    replays = topic_of(options.get("group") or "")
    named = (options.get("subscribe") or "").split(",")
    topics = ",".join(name for name in named if name != replays)
    return f"{node.sourceName()} {topics}".strip()


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _each(plan.children()):
        yield from _nodes(child)


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _typed(expressions: list[Any]) -> str:
    return ", ".join(f"{_text(each)} {each.dataType().sql()}" for each in expressions)


def _text(expression: Any) -> str:
    named = expression.child() if _kind(expression) == "Alias" else expression
    return _ID.sub("", named.toString())


def _list(phrases: list[str], nothing: str = "nothing") -> str:
    return " and ".join(phrases) or nothing

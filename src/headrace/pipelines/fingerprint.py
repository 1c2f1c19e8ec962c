"""What a checkpoint depends on: a query's sources and the shape of its state, in words a person can compare.

Spark refuses, or worse ignores, some changes of a query against its checkpoint; these are told beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypedDict

from pyspark.sql import DataFrame

_ID = re.compile(r"#\d+L?|-T\d+ms")
_ALIAS = re.compile(r" AS [\w.`]+$")


class Fingerprint(TypedDict):
    sources: list[str]
    state: list[str]  # one phrase for each operator that keeps state


def fingerprint(rows: DataFrame) -> Fingerprint:
    plan = rows._jdf.queryExecution().analyzed()
    nodes = list(_nodes(plan))
    sources = [_source(node) for node in nodes if _kind(node).startswith("StreamingRelation")]
    state = [phrase for node in nodes if node.isStreaming() and (phrase := _state(node))]
    return {"sources": sources, "state": state}


def difference(before: Fingerprint, now: Fingerprint) -> str | None:
    """Why a query cannot go on from a checkpoint; None when it can."""
    if before["sources"] != now["sources"]:
        return f"it reads {_list(now['sources'])} now, and read {_list(before['sources'])} before"
    if before["state"] != now["state"]:
        return f"it {_list(now['state'], 'keeps no state')} now, and {_list(before['state'], 'kept no state')} before"
    return None


def _state(node: Any) -> str | None:
    kind = _kind(node)
    if kind == "Aggregate":
        keys = _texts(node.groupingExpressions())
        functions = [text for text in _texts(node.aggregateExpressions()) if text not in keys]
        return f"groups by ({', '.join(keys)}) to {', '.join(functions)}"
    if kind in ("Deduplicate", "DeduplicateWithinWatermark"):
        return f"drops duplicates of ({', '.join(sorted(_texts(node.keys())))})"
    if kind == "Join" and node.left().isStreaming() and node.right().isStreaming():
        condition = _text(node.condition().get()) if node.condition().isDefined() else "everything"
        return f"joins two streams on {condition}"
    if "WithState" in kind:
        return f"keeps state of its own by ({', '.join(_grouping(node))})"
    return None


def _grouping(node: Any) -> list[str]:
    """What a stateful function is called for: the grouping attributes, or, in Python, the first columns of its input."""
    fields = {node.productElementName(number): number for number in range(node.productArity())}
    if "groupingAttributes" in fields:
        return _texts(node.productElement(fields["groupingAttributes"]))
    count = node.productElement(fields["groupingAttributesLen"])
    return _texts(node.children().apply(0).output())[:count]


def _source(node: Any) -> str:
    if _kind(node) != "StreamingRelationV2":
        return str(node.sourceName())
    topics = node.extraOptions().get("subscribe") or ""
    return f"{node.sourceName()} {topics}".strip()


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _texts(expressions: Any) -> list[str]:
    return [_text(expressions.apply(number)) for number in range(expressions.size())]


def _text(expression: Any) -> str:
    return _ALIAS.sub("", _ID.sub("", expression.toString()))


def _list(phrases: list[str], nothing: str = "nothing") -> str:
    return " and ".join(phrases) or nothing

"""What a JSON schema says of its parts: which properties and items it describes, and what covers the rest of its content."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from headrace.registry.formats.json_view import Documents, Kind, View


def number_or_none(value: Any) -> Decimal | None:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None


def values_of(values: Any) -> frozenset[str]:
    """Values as what they are in JSON, where 1 and 1.0 are one number."""
    listed = values if isinstance(values, list) else []
    return frozenset(
        json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value, sort_keys=True)
        for value in listed
    )


def names_of(value: Any) -> frozenset[str]:
    return (
        frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
    )


def required_by(view: View) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for keyword in ("dependencies", "dependentRequired"):
        node = view.get(keyword)
        if isinstance(node, dict):
            found |= {name: names_of(each) for name, each in node.items() if isinstance(each, list)}
    return found


def has_default(view: View, name: str) -> bool:
    properties = view.get("properties")
    node = properties.get(name) if isinstance(properties, dict) else None
    return isinstance(node, dict) and "default" in node


def additional(view: View, keyword: str) -> Any:
    """Draft 2020-12 says under `items`, beside `prefixItems`, what earlier ones said under `additionalItems`."""
    if keyword == "additionalItems" and "prefixItems" in view.raw:
        return view.get("items")
    if keyword == "additionalItems" and not isinstance(view.get("items"), list):
        return None  # it means nothing there
    return view.get(keyword)


def is_open(documents: Documents, view: View, keyword: str, unevaluated: str) -> bool:
    other = additional(view, keyword)
    if other is False or isinstance(other, dict) or view.get("patternProperties"):
        return False
    rest = documents.inside(view, unevaluated)
    return rest is None or rest.kind is Kind.ANYTHING


def covering_schema(documents: Documents, view: View, keyword: str, unevaluated: str) -> View | None:
    """The schema of whatever is not described by name or place, in a content model that is partially open."""
    other = additional(view, keyword)
    if isinstance(other, dict):
        return documents.view(other, view.base)
    if other is False:
        return None
    rest = documents.inside(view, unevaluated)
    return None if rest is None or rest.kind in (Kind.NOTHING, Kind.ANYTHING) else rest


def covering_property(documents: Documents, view: View, name: str) -> View | None:
    for pattern, schema in documents.inside_map(view, "patternProperties").items():
        try:
            if re.search(pattern, name):
                return schema
        except re.error:
            continue  # a pattern that Python's `re` does not understand
    return covering_schema(documents, view, "additionalProperties", "unevaluatedProperties")


def all_items(documents: Documents, view: View) -> View | None:
    if "prefixItems" in view.raw:
        return None
    return documents.inside(view, "items")


def items_of(documents: Documents, view: View) -> list[View]:
    node = view.get("prefixItems") or view.get("items")
    return [documents.view(each, view.base) for each in node] if isinstance(node, list) else []


def distinct(documents: Documents, parts: Sequence[View]) -> list[View]:
    """Parts that say the same count once."""
    found: dict[str, View] = {}
    for part in parts:
        settled = documents.settled(part)
        text = f"{settled.kind} {settled.criterion} {json.dumps(settled.raw, sort_keys=True)} {id(settled) if not settled.raw else ''}"
        found.setdefault(text, settled)
    return list(found.values())

"""Avro schemas as text: the form in which Java's library prints one, and one without what the order of has no meaning.

Both walk the JSON of a schema that `avro` has accepted, so every name leads somewhere.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_OF_TYPE = frozenset(
    {"type", "name", "namespace", "doc", "fields", "symbols", "size", "items", "values", "aliases"}
)
_OF_FIELD = frozenset({"name", "type", "doc", "default", "order", "aliases"})


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def canonical(schema: Any) -> str:
    return compact(_canonical(schema, None))


def _full_name(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _short(full: str, namespace: str | None) -> str:
    """A name as it is written where `namespace` encloses it."""
    space, _, simple = full.rpartition(".")
    return simple if space == (namespace or "") and simple not in PRIMITIVES else full


def _canonical(schema: Any, namespace: str | None) -> Any:
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else _short(_full_name(schema, namespace), namespace)
    if isinstance(schema, list):
        return [_canonical(each, namespace) for each in schema]
    kind = schema["type"]
    if not isinstance(kind, str):  # {"type": {…}}: what is around it says nothing more
        return _canonical(kind, namespace)
    own: dict[str, Any] = {"type": kind}
    extra = {name: value for name, value in schema.items() if name not in _OF_TYPE}
    if kind in _NAMED:
        full = _declared(schema, namespace)
        space, _, simple = full.rpartition(".")
        own["name"] = simple
        if space != (namespace or ""):
            own["namespace"] = space
        if schema.get("doc") is not None:
            own["doc"] = schema["doc"]
        if kind == "enum":
            own["symbols"] = schema["symbols"]
            if "default" in schema:
                own["default"] = extra.pop("default")
        elif kind == "fixed":
            own["size"] = schema["size"]
        else:
            own["fields"] = [_field(field, space) for field in schema["fields"]]
        aliases = [_short(_full_name(alias, space), space) for alias in schema.get("aliases") or ()]
        return {**own, **extra, **({"aliases": aliases} if aliases else {})}
    if kind == "array":
        return {**own, "items": _canonical(schema["items"], namespace), **extra}
    if kind == "map":
        return {**own, "values": _canonical(schema["values"], namespace), **extra}
    if kind not in PRIMITIVES:
        return _canonical(kind, namespace)
    # Whatever Java reserves for other types is dropped here.
    return {**own, **extra} if extra else kind


def _declared(schema: Any, namespace: str | None) -> str:
    name: str = schema["name"]
    if "." in name:
        return name
    return _full_name(name, schema.get("namespace", namespace))


def _field(field: Any, namespace: str | None) -> dict[str, Any]:
    own = {"name": field["name"], "type": _canonical(field["type"], namespace)}
    if field.get("doc") is not None:
        own["doc"] = field["doc"]
    if "default" in field:
        own["default"] = field["default"]
    if field.get("order", "ascending") != "ascending":
        own["order"] = field["order"]
    if field.get("aliases"):
        own["aliases"] = field["aliases"]
    return {**own, **{name: value for name, value in field.items() if name not in _OF_FIELD}}


def normalized(schema: Any, known: Collection[str] = ()) -> str:
    """Full names, attributes in one order, properties sorted; types that references define stay names."""
    return compact(_normalized(schema, None, set(known)))


def _normalized(schema: Any, namespace: str | None, seen: set[str]) -> Any:
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else _full_name(schema, namespace)
    if isinstance(schema, list):
        return [_normalized(each, namespace, seen) for each in schema]
    kind = schema["type"]
    if not isinstance(kind, str):
        return _normalized(kind, namespace, seen)
    extra = {name: _sorted(value) for name, value in sorted(schema.items()) if name not in _OF_TYPE}
    if kind in _NAMED:
        full = _declared(schema, namespace)
        if full in seen:
            return full
        seen.add(full)
        own: dict[str, Any] = {"name": full, "type": kind}
        space = full.rpartition(".")[0]
        if kind == "enum":
            own["symbols"] = schema["symbols"]
        elif kind == "fixed":
            own["size"] = schema["size"]
        else:
            own["fields"] = [_normalized_field(field, space, seen) for field in schema["fields"]]
        for name in ("aliases", "doc"):
            if schema.get(name):
                own[name] = schema[name]
        return {**own, **extra}
    if kind in ("array", "map"):
        below = "items" if kind == "array" else "values"
        return {"type": kind, below: _normalized(schema[below], namespace, seen), **extra}
    if kind not in PRIMITIVES:
        return _normalized(kind, namespace, seen)
    return {"type": kind, **extra} if extra else kind


def _normalized_field(field: Any, namespace: str | None, seen: set[str]) -> dict[str, Any]:
    own = {"name": field["name"], "type": _normalized(field["type"], namespace, seen)}
    for name in ("default", "aliases", "doc", "order"):
        if name in field and (name == "default" or field[name]):
            own[name] = field[name]
    return {**own, **{name: _sorted(value) for name, value in sorted(field.items()) if name not in _OF_FIELD}}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(each) for name, each in sorted(value.items())}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def resolved(schema: Any, references: dict[str, Any]) -> Any:
    """The schema with each type of `references` (by full name) in place of its name, where it is first used."""
    return _resolved(schema, None, dict(references))


def _resolved(schema: Any, namespace: str | None, left: dict[str, Any]) -> Any:
    if isinstance(schema, str):
        full = _full_name(schema, namespace)
        found = left.pop(full, None)
        if found is None:
            return schema if schema in PRIMITIVES else full
        return _resolved(found, None, left)
    if isinstance(schema, list):
        return [_resolved(each, namespace, left) for each in schema]
    kind = schema["type"]
    if not isinstance(kind, str):
        return {**schema, "type": _resolved(kind, namespace, left)}
    if kind in ("record", "error"):
        full = _declared(schema, namespace)
        left.pop(full, None)
        space = full.rpartition(".")[0]
        fields = [{**field, "type": _resolved(field["type"], space, left)} for field in schema["fields"]]
        return {**schema, "name": full, "fields": fields}
    for below in ("items", "values"):
        if kind in ("array", "map") and below in schema:
            return {**schema, below: _resolved(schema[below], namespace, left)}
    return schema

"""JSON schemas as they are compared: references followed, and each schema one of a few kinds of view.

`{"type": "string", "enum": […]}` says two things, so its view is a combination of all of them; a list of types is one of any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from headrace.registry.errors import InvalidSchema

META_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_KEYWORDS = {
    "object": (
        "properties required additionalProperties patternProperties maxProperties minProperties dependencies "
        "dependentRequired dependentSchemas propertyNames unevaluatedProperties"
    ),
    "array": (
        "items prefixItems additionalItems maxItems minItems uniqueItems contains maxContains minContains unevaluatedItems"
    ),
    "string": "maxLength minLength pattern format",
    "number": "maximum minimum exclusiveMaximum exclusiveMinimum multipleOf",
}
_KEYWORDS_OF = {kind: frozenset(words.split()) for kind, words in _KEYWORDS.items()}
_SUBSCHEMAS = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
]
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_MAPS = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies")


class Kind(Enum):
    ANYTHING = "anything"
    NOTHING = "nothing"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    ARRAY = "array"
    ENUM = "enum"
    CONST = "const"
    NOT = "not"
    CONDITION = "condition"
    COMBINED = "combined"


class View:
    """Compared by identity: one view for each place in a schema."""

    __slots__ = ("base", "criterion", "kind", "parts", "raw")

    def __init__(
        self, kind: Kind, raw: Any, base: str, criterion: str = "", parts: tuple[View, ...] = ()
    ) -> None:
        self.kind = kind
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.base = base
        """Against which references inside are resolved."""
        self.criterion = criterion
        """allOf, anyOf or oneOf, for a combination of parts."""
        self.parts = parts

    def get(self, keyword: str) -> Any:
        return self.raw.get(keyword)


class Documents:
    """A schema with those it refers to, by their addresses. Nothing is ever fetched."""

    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:
        self.root = root
        own = root.get("$id", root.get("id")) if isinstance(root, dict) else None
        self.base = own if isinstance(own, str) else ""
        self._by_address: dict[str, tuple[Any, str]] = {}
        self._views: dict[tuple[int, str], View] = {}
        for name, document in references.items():
            self._add(urljoin(self.base, name), document)
            self._add(name, document)
        self._add(self.base, root)

    def _add(self, address: str, document: Any) -> None:
        address = urldefrag(address).url
        self._by_address.setdefault(address, (document, address))
        self._index(document, address, 0)

    def _index(self, node: Any, base: str, depth: int) -> None:
        """Note every schema that has an address of its own."""
        if isinstance(node, list):
            for each in node:
                self._index(each, base, depth + 1)
        if not isinstance(node, dict):
            return
        own = node.get("$id", node.get("id") if depth == 0 else None)
        if isinstance(own, str):
            if own.startswith("#"):
                self._by_address.setdefault(base + own, (node, base))
            else:
                base = urldefrag(urljoin(base, own)).url
                self._by_address.setdefault(base, (node, base))
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                self._by_address.setdefault(f"{base}#{node[keyword]}", (node, base))
        for keyword in (*_SUBSCHEMAS, *_LISTS):
            if keyword in node:
                self._index(node[keyword], base, depth + 1)
        for keyword in _MAPS:
            if isinstance(node.get(keyword), dict):
                self._index(list(node[keyword].values()), base, depth + 1)

    def document(self, address: str) -> Any:
        """The document at an address, for the validator; KeyError when there is none."""
        return self._by_address[urldefrag(address).url][0]

    def check_references(self) -> None:
        """InvalidSchema for one that leads nowhere, or in a circle without a schema on it."""
        seen: set[int] = set()
        left: list[tuple[Any, str]] = list(self._by_address.values())
        while left:
            node, base = left.pop()
            if isinstance(node, list):
                left += [(each, base) for each in node]
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen.add(id(node))
            own = node.get("$id")
            if isinstance(own, str) and not own.startswith("#"):
                base = urldefrag(urljoin(base, own)).url
            if isinstance(node.get("$ref"), str):
                self._follow(node, base)
            left += [(node[keyword], base) for keyword in (*_SUBSCHEMAS, *_LISTS) if keyword in node]
            for keyword in _MAPS:
                if isinstance(node.get(keyword), dict):
                    left.append((list(node[keyword].values()), base))

    def _follow(self, node: Any, base: str) -> tuple[Any, str]:
        trail: list[str] = []
        while isinstance(node, dict) and isinstance(node.get("$ref"), str) and len(node) >= 1:
            reference = (
                urljoin(base, node["$ref"]) if not node["$ref"].startswith("#") else base + node["$ref"]
            )
            if reference in trail:
                raise InvalidSchema(f"the references go in a circle: {' -> '.join([*trail, reference])}")
            trail.append(reference)
            if reference.startswith(META_SCHEMAS) and urldefrag(reference).url not in self._by_address:
                return True, base
            node, base = self._at(reference)
            if self._has_more(node):
                break
        return node, base

    def _has_more(self, node: Any) -> bool:
        return isinstance(node, dict) and "$ref" in node and bool(node.keys() & _BESIDE_REFERENCE)

    def _at(self, reference: str) -> tuple[Any, str]:
        found = self._by_address.get(reference)
        if found is not None:
            return found
        address, fragment = urldefrag(reference)
        found = self._by_address.get(address)
        if found is None:
            raise InvalidSchema(
                f"the $ref {reference} is not among the references, and nothing is fetched from the network; add a reference "
                "with this name, a subject and a version"
            )
        node, base = found
        if fragment and not fragment.startswith("/"):
            raise InvalidSchema(f"the $ref {reference} leads nowhere")
        for part in unquote(fragment).split("/")[1:]:
            step = part.replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(step)] if isinstance(node, list) else node[step]
            except (KeyError, IndexError, ValueError, TypeError):
                raise InvalidSchema(f"the $ref {reference} leads nowhere") from None
            if (
                isinstance(node, dict)
                and isinstance(node.get("$id"), str)
                and not node["$id"].startswith("#")
            ):
                base = urldefrag(urljoin(base, node["$id"])).url
        return node, base

    # Views.

    def view(self, node: Any = None, base: str | None = None) -> View:
        """Of the whole schema, or of a schema inside it."""
        if node is None and base is None:
            node, base = self.root, self.base
        assert base is not None
        if isinstance(node, dict) and isinstance(node.get("$ref"), str) and not self._has_more(node):
            node, base = self._follow(node, base)
        key = id(node), base
        found = self._views.get(key)
        if found is None:
            if (
                isinstance(node, dict)
                and isinstance(node.get("$id"), str)
                and not node["$id"].startswith("#")
            ):
                base = urldefrag(urljoin(base, node["$id"])).url
            found = self._views[key] = self._make(node, base)
        return found

    def inside(self, view: View, keyword: str) -> View | None:
        """The view of a schema that stands under a keyword."""
        node = view.raw.get(keyword)
        return self.view(node, view.base) if isinstance(node, dict | bool) else None

    def inside_map(self, view: View, *keywords: str) -> dict[str, View]:
        found: dict[str, View] = {}
        for keyword in keywords:
            node = view.raw.get(keyword)
            if isinstance(node, dict):
                found |= {
                    name: self.view(each, view.base)
                    for name, each in node.items()
                    if isinstance(each, dict | bool)
                }
        return found

    def _make(self, node: Any, base: str) -> View:
        if node is False:
            return View(Kind.NOTHING, node, base)
        if not isinstance(node, dict):
            return View(Kind.ANYTHING, node, base)
        parts: list[View] = []
        if isinstance(node.get("$ref"), str):
            target, there = self._follow({"$ref": node["$ref"]}, base)
            parts.append(self.view(target, there))
        kinds = node.get("type")
        if isinstance(kinds, list) and len(kinds) > 1:
            each = tuple(View(_of_type(kind), {**node, "type": kind}, base) for kind in kinds)
            parts.append(View(Kind.COMBINED, {}, base, "anyOf", each))
        elif isinstance(kinds, str) or (isinstance(kinds, list) and kinds):
            kind = kinds if isinstance(kinds, str) else kinds[0]
            parts.append(View(_of_type(kind), {**node, "type": kind}, base))
        else:
            parts += [
                View(Kind(kind), node, base) for kind, words in _KEYWORDS_OF.items() if node.keys() & words
            ]
        if "enum" in node:
            parts.append(View(Kind.ENUM, node, base))
        if "const" in node:
            parts.append(View(Kind.CONST, node, base))
        if "not" in node:
            parts.append(View(Kind.NOT, node, base))
        if "if" in node:
            parts.append(View(Kind.CONDITION, node, base))
        for criterion in ("allOf", "anyOf", "oneOf"):
            if isinstance(node.get(criterion), list):
                inside = tuple(self._part(each, base) for each in node[criterion])
                parts.append(View(Kind.COMBINED, node, base, criterion, inside))
        if not parts:
            return View(Kind.ANYTHING, node, base)
        return parts[0] if len(parts) == 1 else View(Kind.COMBINED, node, base, "allOf", tuple(parts))

    def _part(self, node: Any, base: str) -> View:
        """A part of a combination. One that refers back is followed when it is compared, not here."""
        if isinstance(node, dict) and "$ref" in node and not self._has_more(node):
            return View(Kind.COMBINED, {"$ref": node["$ref"]}, base, "$ref")
        return self.view(node, base)

    def settled(self, view: View) -> View:
        """The view itself, or the one that it refers to."""
        return self.view(view.raw, view.base) if view.criterion == "$ref" else view


_BESIDE_REFERENCE = frozenset().union(
    *_KEYWORDS_OF.values(), ("type", "enum", "const", "not", "if", "allOf", "anyOf", "oneOf")
)
"""What says something of its own beside a $ref, from draft 2019-09 on."""


def _of_type(kind: Any) -> Kind:
    return Kind.NUMBER if kind == "integer" else Kind(kind)

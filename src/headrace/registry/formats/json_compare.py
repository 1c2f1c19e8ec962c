"""Finding the differences of two JSON schemas: what `json_rules.py` judges.

Each pair of schemas is compared once. A pair that is met again while it is under way counts as compatible; when such a guess was made, the
comparison is repeated with the pairs that proved incompatible known from the start, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.registry.formats.json_parts import (
    additional,
    all_items,
    covering_property,
    covering_schema,
    distinct,
    has_default,
    is_open,
    items_of,
    names_of,
    number_or_none,
    required_by,
    values_of,
)
from headrace.registry.formats.json_rules import Change, Found
from headrace.registry.formats.json_view import Documents, Kind, View

MOST_PAIRS = 50_000
"""Beyond this many comparisons of pairs two schemas are not compared further."""


class TooComplex(Exception):
    pass


def differences(old: Documents, new: Documents, *, lenient: bool = False) -> list[Found]:
    """What changed from `old` to `new` and keeps `new` from accepting what `old` did."""
    return [each for each in changes(old, new, lenient=lenient) if each.matters(lenient=lenient)]


def changes(old: Documents, new: Documents, *, lenient: bool = False) -> list[Found]:
    """Whatever changed, also what does no harm."""
    seed: dict[tuple[View, View], list[Found]] = {}
    while True:
        walk = _Walk(old, new, lenient, seed)
        found = walk.compare(old.view(), new.view())
        wrong = {pair: known for pair, known in walk.memo.items() if not walk.compatible(known)}
        if not walk.guessed or wrong.keys() == seed.keys():
            return list(dict.fromkeys(found))
        seed = wrong


def _at(found: Iterable[Found], *path: str) -> list[Found]:
    return [Found(each.change, path + each.path) for each in found]


class _Walk:
    def __init__(
        self, old: Documents, new: Documents, lenient: bool, seed: dict[tuple[View, View], list[Found]]
    ) -> None:
        self._old, self._new, self._lenient, self._seed = old, new, lenient, seed
        self.memo: dict[tuple[View, View], list[Found]] = {}
        self._under_way: set[tuple[View, View]] = set()
        self._pairs = 0
        self.guessed = False

    def compatible(self, found: Iterable[Found]) -> bool:
        return not any(each.matters(lenient=self._lenient) for each in found)

    def compare(self, old: View | None, new: View | None) -> list[Found]:
        if old is None or new is None:
            if old is new:
                return []
            return [Found(Change.SCHEMA_ADDED if old is None else Change.SCHEMA_REMOVED, ())]
        old, new = self._old.settled(old), self._new.settled(new)
        pair = old, new
        known = self.memo.get(pair)
        if known is not None:
            return known
        if pair in self._under_way:
            if pair in self._seed:
                return self._seed[pair]
            self.guessed = True
            return []
        self._pairs += 1
        if self._pairs > MOST_PAIRS:
            raise TooComplex
        self._under_way.add(pair)
        try:
            found = self.memo[pair] = self._kinds(old, new)
        finally:
            self._under_way.discard(pair)
        return found

    def _kinds(self, old: View, new: View) -> list[Found]:
        special = self._one_of_them_combined(old, new)
        if special is not None:
            return special
        if old.kind is not new.kind:
            if old.kind is Kind.NOTHING or new.kind is Kind.ANYTHING:
                return []
            if old.get("connect.type") == new.get("connect.type") == "bytes":
                return []  # Connect's decimals were numbers once, and are strings now
            return [Found(Change.TYPE_CHANGED, ())]
        found = [
            Found(change, ())
            for keyword, change in _ANNOTATIONS.items()
            if (old.get(keyword), keyword in old.raw) != (new.get(keyword), keyword in new.raw)
        ]
        compare = _BY_KIND.get(old.kind)
        return found + compare(self, old, new) if compare is not None else found

    def _one_of_them_combined(self, old: View, new: View) -> list[Found] | None:
        """A schema against a combination that holds it; None where the plain comparison decides."""
        if old.kind is not Kind.COMBINED and new.kind is Kind.COMBINED:
            if len(new.parts) == 1:
                found = self.compare(old, new.parts[0])
                return found if self.compatible(found) else None
            if new.criterion in ("anyOf", "oneOf"):
                for part in new.parts:
                    found = self.compare(old, part)
                    if self.compatible(found):
                        return [*found, Found(Change.SUM_TYPE_EXTENDED, ())]
        elif old.kind is Kind.COMBINED and new.kind is not Kind.COMBINED:
            if len(old.parts) == 1:
                found = self.compare(old.parts[0], new)
                return found if self.compatible(found) else None
            if old.criterion == "allOf":
                for part in old.parts:
                    found = self.compare(part, new)
                    if self.compatible(found):
                        return [*found, Found(Change.PRODUCT_TYPE_NARROWED, ())]
        return None

    # Kind by kind.

    def _string(self, old: View, new: View) -> list[Found]:
        found = [*_bounds(old, new, "maxLength", "MAX_LENGTH"), *_bounds(old, new, "minLength", "MIN_LENGTH")]
        before, after = old.get("pattern"), new.get("pattern")
        if before != after:
            change = (
                Change.PATTERN_ADDED
                if before is None
                else Change.PATTERN_REMOVED
                if after is None
                else Change.PATTERN_CHANGED
            )
            found.append(Found(change, ("pattern",)))
        return found

    def _number(self, old: View, new: View) -> list[Found]:
        found = []
        for keyword, name in (
            ("maximum", "MAXIMUM"),
            ("minimum", "MINIMUM"),
            ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
            ("exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
        ):
            found += _bounds(old, new, keyword, name)
        before, after = number_or_none(old.get("multipleOf")), number_or_none(new.get("multipleOf"))
        if before != after:
            if before is None or after is None:
                change = Change.MULTIPLE_OF_ADDED if before is None else Change.MULTIPLE_OF_REMOVED
            elif before and after % before == 0:
                change = Change.MULTIPLE_OF_EXPANDED
            elif after and before % after == 0:
                change = Change.MULTIPLE_OF_REDUCED
            else:
                change = Change.MULTIPLE_OF_CHANGED
            found.append(Found(change, ("multipleOf",)))
        whole, still = old.get("type") == "integer", new.get("type") == "integer"
        if whole != still:
            found.append(Found(Change.TYPE_EXTENDED if whole else Change.TYPE_NARROWED, ()))
        return found

    def _enum(self, old: View, new: View) -> list[Found]:
        before, after = values_of(old.get("enum")), values_of(new.get("enum"))
        if before == after:
            return []
        change = (
            Change.ENUM_ARRAY_EXTENDED
            if before <= after
            else Change.ENUM_ARRAY_NARROWED
            if after <= before
            else Change.ENUM_ARRAY_CHANGED
        )
        return [Found(change, ("enum",))]

    def _const(self, old: View, new: View) -> list[Found]:
        same = values_of([old.get("const")]) == values_of([new.get("const")])
        return [] if same else [Found(Change.ENUM_ARRAY_CHANGED, ("const",))]

    def _not(self, old: View, new: View) -> list[Found]:
        back = _Walk(self._new, self._old, self._lenient, {})
        back._pairs = self._pairs
        narrower = self.compatible(back.compare(self._new.inside(new, "not"), self._old.inside(old, "not")))
        self._pairs = back._pairs
        return [Found(Change.NOT_TYPE_NARROWED if narrower else Change.NOT_TYPE_EXTENDED, ("not",))]

    def _combined(self, old: View, new: View) -> list[Found]:
        found = []
        if old.criterion != new.criterion:
            single, still = len(old.parts) == 1, len(new.parts) == 1
            if not (
                new.criterion == "anyOf"
                or (single and still)
                or (single and new.criterion == "oneOf")
                or (still and old.criterion == "allOf")
            ):
                return [Found(Change.COMBINED_TYPE_CHANGED, ())]
            found.append(Found(Change.COMBINED_TYPE_EXTENDED, ()))
        before, after = distinct(self._old, old.parts), distinct(self._new, new.parts)
        if len(before) < len(after):
            product = new.criterion == "allOf"
            found.append(Found(Change.PRODUCT_TYPE_EXTENDED if product else Change.SUM_TYPE_EXTENDED, ()))
        elif len(before) > len(after):
            total = old.criterion in ("anyOf", "oneOf")
            found.append(Found(Change.SUM_TYPE_NARROWED if total else Change.PRODUCT_TYPE_NARROWED, ()))
        edges: list[dict[int, list[Found]]] = []
        for part in before:
            edges.append({})
            for number, other in enumerate(after):
                compared = self.compare(part, other)
                if self.compatible(compared):
                    edges[-1][number] = compared
        matched = _match(edges)
        for new_number, old_number in matched.items():
            found += _at(edges[old_number][new_number], old.criterion, str(old_number))
        if len(matched) < min(len(before), len(after)):
            found.append(Found(Change.COMBINED_TYPE_SUBSCHEMAS_CHANGED, ()))
        return found

    def _object(self, old: View, new: View) -> list[Found]:
        before, after = self._old.inside_map(old, "properties"), self._new.inside_map(new, "properties")
        required, still = names_of(old.get("required")), names_of(new.get("required"))
        found = []
        for name in before.keys() & after.keys():
            if name in required and name not in still:
                found.append(Found(Change.REQUIRED_ATTRIBUTE_REMOVED, ("required", name)))
            elif name in still and name not in required:
                default = has_default(new, name)
                change = (
                    Change.REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED
                    if default
                    else Change.REQUIRED_ATTRIBUTE_ADDED
                )
                found.append(Found(change, ("required", name)))
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                found += _at(self._property_removed(before[name], new, name), "properties", name)
            elif name not in before:
                found += _at(self._property_added(old, new, after[name], name, still), "properties", name)
            else:
                found += _at(self.compare(before[name], after[name]), "properties", name)
        found += _at(self._dependencies(old, new), "dependencies")
        found += _at(self._additional(old, new, "additionalProperties"), "additionalProperties")
        found += _at(self._unevaluated(old, new, "unevaluatedProperties"), "unevaluatedProperties")
        return [
            *found,
            *_bounds(old, new, "maxProperties", "MAX_PROPERTIES"),
            *_bounds(old, new, "minProperties", "MIN_PROPERTIES"),
        ]

    def _property_removed(self, was: View, new: View, name: str) -> list[Found]:
        if is_open(self._new, new, "additionalProperties", "unevaluatedProperties"):
            return [Found(Change.PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL, ())]
        covering = covering_property(self._new, new, name)
        if covering is not None:
            found = self.compare(was, covering)
            covered = self.compatible(found)
            change = (
                Change.PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
                if covered
                else Change.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            )
            return [*found, Found(change, ())]
        nothing = was.kind is Kind.NOTHING
        return [
            Found(
                Change.PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL
                if nothing
                else Change.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL,
                (),
            )
        ]

    def _property_added(
        self, old: View, new: View, now: View, name: str, required: frozenset[str]
    ) -> list[Found]:
        default = has_default(new, name)
        if is_open(self._old, old, "additionalProperties", "unevaluatedProperties"):
            if now.kind is Kind.ANYTHING:
                return [Found(Change.PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL, ())]
            if name not in required:
                return [Found(Change.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL, ())]
            change = (
                Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
                if default
                else Change.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
            )
            return [Found(change, ())]
        found: list[Found] = []
        covering = covering_property(self._old, old, name)
        if covering is not None:
            found += self.compare(covering, now)
            change = (
                Change.PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
                if self.compatible(found)
                else Change.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            )
            found.append(Found(change, ()))
        if name not in required:
            change = Change.OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
        elif default:
            change = Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL
        else:
            change = Change.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
        return [*found, Found(change, ())]

    def _dependencies(self, old: View, new: View) -> list[Found]:
        found = []
        before, after = required_by(old), required_by(new)
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            if was == now:
                continue
            if was is None or now is None:
                change = Change.DEPENDENCY_ARRAY_ADDED if was is None else Change.DEPENDENCY_ARRAY_REMOVED
            elif was < now:
                change = Change.DEPENDENCY_ARRAY_EXTENDED
            else:
                change = Change.DEPENDENCY_ARRAY_NARROWED if now < was else Change.DEPENDENCY_ARRAY_CHANGED
            found.append(Found(change, (name,)))
        schemas = self._old.inside_map(old, "dependencies", "dependentSchemas")
        later = self._new.inside_map(new, "dependencies", "dependentSchemas")
        for name in sorted(schemas.keys() | later.keys()):
            if name not in schemas or name not in later:
                change = Change.DEPENDENCY_SCHEMA_ADDED if name in later else Change.DEPENDENCY_SCHEMA_REMOVED
                found.append(Found(change, (name,)))
            else:
                found += _at(self.compare(schemas[name], later[name]), name)
        return found

    def _additional(self, old: View, new: View, keyword: str) -> list[Found]:
        """What may stand beside what is described, under `additionalProperties` or its like for items."""
        name = "ADDITIONAL_PROPERTIES" if keyword == "additionalProperties" else "ADDITIONAL_ITEMS"
        permits, still = additional(old, keyword) is not False, additional(new, keyword) is not False
        if permits != still:
            return [Found(Change(f"{name}_{'REMOVED' if permits else 'ADDED'}"), ())]
        was = self._schema(self._old, old, additional(old, keyword))
        now = self._schema(self._new, new, additional(new, keyword))
        if was is None and now is not None:
            return [Found(Change(f"{name}_NARROWED"), ())]
        if was is not None and now is None:
            return [Found(Change(f"{name}_EXTENDED"), ())]
        return self.compare(was, now)

    @staticmethod
    def _schema(documents: Documents, view: View, node: Any) -> View | None:
        return documents.view(node, view.base) if isinstance(node, dict) else None

    def _unevaluated(self, old: View, new: View, keyword: str) -> list[Found]:
        name = "UNEVALUATED_PROPERTIES" if keyword == "unevaluatedProperties" else "UNEVALUATED_ITEMS"
        was, now = self._old.inside(old, keyword), self._new.inside(new, keyword)
        if was is None and now is None:
            return []
        closed, closing = (
            was is not None and was.kind is Kind.NOTHING,
            now is not None and now.kind is Kind.NOTHING,
        )
        open_, opening = was is None or was.kind is Kind.ANYTHING, now is None or now.kind is Kind.ANYTHING
        if closed and closing:
            return []
        if closing or closed:
            return [Found(Change(f"{name}_{'REMOVED' if closing else 'ADDED'}"), ())]
        if open_ != opening or was is None or now is None:
            return [Found(Change(f"{name}_{'NARROWED' if was is None or open_ else 'EXTENDED'}"), ())]
        return self.compare(was, now)

    def _array(self, old: View, new: View) -> list[Found]:
        found = _at(self.compare(all_items(self._old, old), all_items(self._new, new)), "items")
        before, after = items_of(self._old, old), items_of(self._new, new)
        for number, (was, now) in enumerate(zip(before, after, strict=False)):
            found += _at(self.compare(was, now), f"items/{number}")
        for number in range(len(after), len(before)):
            found += _at(self._item_removed(before[number], new), f"items/{number}")
        for number in range(len(before), len(after)):
            found += _at(self._item_added(old, after[number]), f"items/{number}")
        found += _at(self._additional(old, new, "additionalItems"), "additionalItems")
        found += _at(self._unevaluated(old, new, "unevaluatedItems"), "unevaluatedItems")
        found += [*_bounds(old, new, "maxItems", "MAX_ITEMS"), *_bounds(old, new, "minItems", "MIN_ITEMS")]
        unique, still = bool(old.get("uniqueItems")), bool(new.get("uniqueItems"))
        if unique != still:
            change = Change.UNIQUE_ITEMS_REMOVED if unique else Change.UNIQUE_ITEMS_ADDED
            found.append(Found(change, ("uniqueItems",)))
        return [
            *found,
            *_bounds(old, new, "maxContains", "MAX_CONTAINS"),
            *_bounds(old, new, "minContains", "MIN_CONTAINS"),
        ]

    def _item_removed(self, was: View, new: View) -> list[Found]:
        if is_open(self._new, new, "additionalItems", "unevaluatedItems"):
            return [Found(Change.ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL, ())]
        covering = covering_schema(self._new, new, "additionalItems", "unevaluatedItems")
        if covering is not None:
            found = self.compare(was, covering)
            change = (
                Change.ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
                if self.compatible(found)
                else Change.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            )
            return [*found, Found(change, ())]
        change = (
            Change.ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL
            if was.kind is Kind.NOTHING
            else Change.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL
        )
        return [Found(change, ())]

    def _item_added(self, old: View, now: View) -> list[Found]:
        if is_open(self._old, old, "additionalItems", "unevaluatedItems"):
            change = (
                Change.ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
                if now.kind is Kind.ANYTHING
                else Change.ITEM_ADDED_TO_OPEN_CONTENT_MODEL
            )
            return [Found(change, ())]
        covering = covering_schema(self._old, old, "additionalItems", "unevaluatedItems")
        if covering is None:
            return [Found(Change.ITEM_ADDED_TO_CLOSED_CONTENT_MODEL, ())]
        found = self.compare(covering, now)
        change = (
            Change.ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            if self.compatible(found)
            else Change.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        )
        return [*found, Found(change, ())]


_ANNOTATIONS = {
    "$id": Change.ID_CHANGED,
    "title": Change.TITLE_CHANGED,
    "description": Change.DESCRIPTION_CHANGED,
    "default": Change.DEFAULT_CHANGED,
}
_BY_KIND: dict[Kind, Callable[[_Walk, View, View], list[Found]]] = {
    Kind.STRING: _Walk._string,
    Kind.NUMBER: _Walk._number,
    Kind.ENUM: _Walk._enum,
    Kind.CONST: _Walk._const,
    Kind.NOT: _Walk._not,
    Kind.COMBINED: _Walk._combined,
    Kind.OBJECT: _Walk._object,
    Kind.ARRAY: _Walk._array,
}


def _bounds(old: View, new: View, keyword: str, name: str) -> list[Found]:
    before, after = number_or_none(old.get(keyword)), number_or_none(new.get(keyword))
    if before == after:
        return []
    if before is None or after is None:
        change = Change(f"{name}_{'ADDED' if before is None else 'REMOVED'}")
    else:
        change = Change(f"{name}_{'INCREASED' if before < after else 'DECREASED'}")
    return [Found(change, (keyword,))]


def _match(edges: Sequence[dict[int, list[Found]]]) -> dict[int, int]:
    """As many pairs as can be made of the two sides: what each one on the right is paired with."""
    matched: dict[int, int] = {}

    def find(left: int, tried: set[int]) -> bool:
        for right in edges[left]:
            if right in tried:
                continue
            tried.add(right)
            if right not in matched or find(matched[right], tried):
                matched[right] = left
                return True
        return False

    for left in range(len(edges)):
        find(left, set())
    return matched

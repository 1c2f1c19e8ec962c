"""Each rule of JSON Schema compatibility: a change that it names, and whether the new schema accepts what the old one did."""

import json
from typing import Any

import pytest

from headrace.registry.formats import json_schema
from headrace.registry.formats.compatibility import Level, compare
from headrace.registry.formats.json_compare import changes
from headrace.registry.formats.json_rules import RULES, Change

Schema = dict[str, Any] | bool
STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}


def described(**properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def closed(**properties: Schema) -> dict[str, Any]:
    return {**described(**properties), "additionalProperties": False}


def partly(**properties: Schema) -> dict[str, Any]:
    return {**described(**properties), "additionalProperties": STRING}


def items(*each: Schema, **rest: Any) -> dict[str, Any]:
    return {"type": "array", "items": list(each), **rest}


def bounds(name: str, keyword: str, kind: str) -> list[tuple[Change, Schema, Schema]]:
    without, low, high = {"type": kind}, {"type": kind, keyword: 1}, {"type": kind, keyword: 2}
    return [
        (Change(f"{name}_ADDED"), without, low),
        (Change(f"{name}_REMOVED"), low, without),
        (Change(f"{name}_INCREASED"), low, high),
        (Change(f"{name}_DECREASED"), high, low),
    ]


DEFAULT = {"type": "string", "default": ""}
CASES: list[tuple[Change, Schema, Schema]] = [
    (Change.ID_CHANGED, {"$id": "http://a/", **STRING}, {"$id": "http://b/", **STRING}),
    (Change.TITLE_CHANGED, STRING, {**STRING, "title": "t"}),
    (Change.DESCRIPTION_CHANGED, STRING, {**STRING, "description": "d"}),
    (Change.DEFAULT_CHANGED, STRING, DEFAULT),
    (Change.SCHEMA_ADDED, {"type": "array"}, {"type": "array", "items": STRING}),
    (Change.SCHEMA_REMOVED, {"type": "array", "items": STRING}, {"type": "array"}),
    (Change.TYPE_EXTENDED, INTEGER, NUMBER),
    (Change.TYPE_NARROWED, NUMBER, INTEGER),
    (Change.TYPE_CHANGED, STRING, NUMBER),
    *bounds("MAX_LENGTH", "maxLength", "string"),
    *bounds("MIN_LENGTH", "minLength", "string"),
    (Change.PATTERN_ADDED, STRING, {**STRING, "pattern": "a"}),
    (Change.PATTERN_REMOVED, {**STRING, "pattern": "a"}, STRING),
    (Change.PATTERN_CHANGED, {**STRING, "pattern": "a"}, {**STRING, "pattern": "b"}),
    *bounds("MAXIMUM", "maximum", "number"),
    *bounds("MINIMUM", "minimum", "number"),
    *bounds("EXCLUSIVE_MAXIMUM", "exclusiveMaximum", "number"),
    *bounds("EXCLUSIVE_MINIMUM", "exclusiveMinimum", "number"),
    (Change.MULTIPLE_OF_ADDED, NUMBER, {**NUMBER, "multipleOf": 2}),
    (Change.MULTIPLE_OF_REMOVED, {**NUMBER, "multipleOf": 2}, NUMBER),
    (Change.MULTIPLE_OF_EXPANDED, {**NUMBER, "multipleOf": 0.5}, {**NUMBER, "multipleOf": 2}),
    (Change.MULTIPLE_OF_REDUCED, {**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 0.5}),
    (Change.MULTIPLE_OF_CHANGED, {**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 3}),
    (Change.REQUIRED_ATTRIBUTE_ADDED, described(a=STRING), {**described(a=STRING), "required": ["a"]}),
    (
        Change.REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED,
        described(a=DEFAULT),
        {**described(a=DEFAULT), "required": ["a"]},
    ),
    (Change.REQUIRED_ATTRIBUTE_REMOVED, {**described(a=STRING), "required": ["a"]}, described(a=STRING)),
    *bounds("MAX_PROPERTIES", "maxProperties", "object"),
    *bounds("MIN_PROPERTIES", "minProperties", "object"),
    (Change.ADDITIONAL_PROPERTIES_ADDED, closed(a=STRING), described(a=STRING)),
    (Change.ADDITIONAL_PROPERTIES_REMOVED, described(a=STRING), closed(a=STRING)),
    (Change.ADDITIONAL_PROPERTIES_EXTENDED, partly(a=STRING), described(a=STRING)),
    (Change.ADDITIONAL_PROPERTIES_NARROWED, described(a=STRING), partly(a=STRING)),
    (
        Change.UNEVALUATED_PROPERTIES_ADDED,
        {**described(a=STRING), "unevaluatedProperties": False},
        described(a=STRING),
    ),
    (
        Change.UNEVALUATED_PROPERTIES_REMOVED,
        described(a=STRING),
        {**described(a=STRING), "unevaluatedProperties": False},
    ),
    (
        Change.UNEVALUATED_PROPERTIES_EXTENDED,
        {**described(a=STRING), "unevaluatedProperties": STRING},
        described(a=STRING),
    ),
    (
        Change.UNEVALUATED_PROPERTIES_NARROWED,
        described(a=STRING),
        {**described(a=STRING), "unevaluatedProperties": STRING},
    ),
    (Change.DEPENDENCY_ARRAY_ADDED, described(), {**described(), "dependencies": {"a": ["b"]}}),
    (Change.DEPENDENCY_ARRAY_REMOVED, {**described(), "dependencies": {"a": ["b"]}}, described()),
    (
        Change.DEPENDENCY_ARRAY_EXTENDED,
        {**described(), "dependencies": {"a": ["b"]}},
        {**described(), "dependencies": {"a": ["b", "c"]}},
    ),
    (
        Change.DEPENDENCY_ARRAY_NARROWED,
        {**described(), "dependencies": {"a": ["b", "c"]}},
        {**described(), "dependencies": {"a": ["b"]}},
    ),
    (
        Change.DEPENDENCY_ARRAY_CHANGED,
        {**described(), "dependencies": {"a": ["b"]}},
        {**described(), "dependencies": {"a": ["c"]}},
    ),
    (Change.DEPENDENCY_SCHEMA_ADDED, described(), {**described(), "dependencies": {"a": closed()}}),
    (Change.DEPENDENCY_SCHEMA_REMOVED, {**described(), "dependencies": {"a": closed()}}, described()),
    (
        Change.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL,
        described(),
        {**described(a=STRING), "required": ["a"]},
    ),
    (
        Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL,
        described(),
        {**described(a=DEFAULT), "required": ["a"]},
    ),
    (Change.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL, described(), described(a=STRING)),
    (Change.PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL, described(), described(a={})),
    (
        Change.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL,
        closed(),
        {**closed(a=STRING), "required": ["a"]},
    ),
    (
        Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL,
        closed(),
        {**closed(a=DEFAULT), "required": ["a"]},
    ),
    (Change.OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL, closed(), closed(a=STRING)),
    (Change.PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL, described(a=STRING), described()),
    (Change.PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL, closed(a=False), closed()),
    (Change.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL, closed(a=STRING), closed()),
    (Change.PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, partly(a=STRING), partly()),
    (Change.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, partly(a=NUMBER), partly()),
    (Change.PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, partly(), partly(a=STRING)),
    (Change.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL, partly(), partly(a=NUMBER)),
    *bounds("MAX_ITEMS", "maxItems", "array"),
    *bounds("MIN_ITEMS", "minItems", "array"),
    *bounds("MAX_CONTAINS", "maxContains", "array"),
    *bounds("MIN_CONTAINS", "minContains", "array"),
    (Change.UNIQUE_ITEMS_ADDED, {"type": "array"}, {"type": "array", "uniqueItems": True}),
    (Change.UNIQUE_ITEMS_REMOVED, {"type": "array", "uniqueItems": True}, {"type": "array"}),
    (Change.ADDITIONAL_ITEMS_ADDED, items(STRING, additionalItems=False), items(STRING)),
    (Change.ADDITIONAL_ITEMS_REMOVED, items(STRING), items(STRING, additionalItems=False)),
    (Change.ADDITIONAL_ITEMS_EXTENDED, items(STRING, additionalItems=STRING), items(STRING)),
    (Change.ADDITIONAL_ITEMS_NARROWED, items(STRING), items(STRING, additionalItems=STRING)),
    (Change.UNEVALUATED_ITEMS_ADDED, items(STRING, unevaluatedItems=False), items(STRING)),
    (Change.UNEVALUATED_ITEMS_REMOVED, items(STRING), items(STRING, unevaluatedItems=False)),
    (Change.UNEVALUATED_ITEMS_EXTENDED, items(STRING, unevaluatedItems=STRING), items(STRING)),
    (Change.UNEVALUATED_ITEMS_NARROWED, items(STRING), items(STRING, unevaluatedItems=STRING)),
    (Change.ITEM_ADDED_TO_OPEN_CONTENT_MODEL, items(STRING), items(STRING, STRING)),
    (Change.ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL, items(STRING), items(STRING, {})),
    (
        Change.ITEM_ADDED_TO_CLOSED_CONTENT_MODEL,
        items(STRING, additionalItems=False),
        items(STRING, STRING, additionalItems=False),
    ),
    (Change.ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL, items(STRING, STRING), items(STRING)),
    (
        Change.ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL,
        items(STRING, False, additionalItems=False),
        items(STRING, additionalItems=False),
    ),
    (
        Change.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL,
        items(STRING, STRING, additionalItems=False),
        items(STRING, additionalItems=False),
    ),
    (
        Change.ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        items(STRING, STRING, additionalItems=STRING),
        items(STRING, additionalItems=STRING),
    ),
    (
        Change.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        items(STRING, NUMBER, additionalItems=STRING),
        items(STRING, additionalItems=STRING),
    ),
    (
        Change.ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        items(STRING, additionalItems=STRING),
        items(STRING, STRING, additionalItems=STRING),
    ),
    (
        Change.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        items(STRING, additionalItems=STRING),
        items(STRING, NUMBER, additionalItems=STRING),
    ),
    (Change.ENUM_ARRAY_EXTENDED, {"enum": [1, 2]}, {"enum": [1, 2, 3]}),
    (Change.ENUM_ARRAY_NARROWED, {"enum": [1, 2]}, {"enum": [1]}),
    (Change.ENUM_ARRAY_CHANGED, {"enum": [1, 2]}, {"enum": [2, 3]}),
    (Change.COMBINED_TYPE_EXTENDED, {"oneOf": [STRING, NUMBER]}, {"anyOf": [STRING, NUMBER]}),
    (Change.COMBINED_TYPE_CHANGED, {"anyOf": [STRING, NUMBER]}, {"oneOf": [STRING, NUMBER]}),
    (
        Change.COMBINED_TYPE_SUBSCHEMAS_CHANGED,
        {"oneOf": [STRING, NUMBER]},
        {"oneOf": [{"type": "boolean"}, NUMBER]},
    ),
    (
        Change.PRODUCT_TYPE_EXTENDED,
        {"allOf": [STRING, {"enum": ["a"]}]},
        {"allOf": [STRING, {"enum": ["a"]}, {"not": NUMBER}]},
    ),
    (
        Change.PRODUCT_TYPE_NARROWED,
        {"allOf": [STRING, {"enum": ["a"]}, {"not": NUMBER}]},
        {"allOf": [STRING, {"enum": ["a"]}]},
    ),
    (Change.SUM_TYPE_EXTENDED, {"oneOf": [STRING]}, {"oneOf": [STRING, NUMBER]}),
    (Change.SUM_TYPE_NARROWED, {"oneOf": [STRING, NUMBER, {"type": "null"}]}, {"oneOf": [STRING, NUMBER]}),
    (
        Change.NOT_TYPE_EXTENDED,
        {"not": {**STRING, "maxLength": 1}},
        {"not": {**STRING, "maxLength": 2}},
    ),
    (Change.NOT_TYPE_NARROWED, {"not": {**STRING, "maxLength": 2}}, {"not": {**STRING, "maxLength": 1}}),
]


def read(schema: Schema) -> json_schema.JsonSchema:
    return json_schema.read(json.dumps(schema), {}, new=True)


def test_every_rule_has_a_case() -> None:
    assert {change for change, _, _ in CASES} == set(RULES) == set(Change)


@pytest.mark.parametrize(("change", "old", "new"), CASES, ids=[str(change) for change, _, _ in CASES])
def test_a_rule(change: Change, old: Schema, new: Schema) -> None:
    before, after = read(old), read(new)
    assert change in [found.change for found in changes(before._documents, after._documents)]
    strict = compare(Level.BACKWARD, after, before, 1)
    lenient = compare(Level.BACKWARD, after, before, 1, lenient=True)
    rule = RULES[change]
    assert any(f'errorType:"{change}"' in each for each in strict) == bool(rule.text)
    assert any(f'errorType:"{change}"' in each for each in lenient) == bool(rule.text and not rule.lenient)


def test_references_are_followed_on_both_sides() -> None:
    def tree(value: Schema) -> Schema:
        node = described(value=value, next={"$ref": "#/definitions/node"})
        return {"$ref": "#/definitions/node", "definitions": {"node": node}}

    assert compare(Level.FULL, read(tree(STRING)), read(tree(STRING)), 1) == []
    messages = compare(Level.BACKWARD, read(tree(NUMBER)), read(tree(STRING)), 1)
    assert any("TYPE_CHANGED" in each and "#/properties/value" in each for each in messages)


def test_definitions_that_all_refer_to_each_other_are_compared_in_no_time() -> None:
    count = 15
    every = {f"p{number}": {"$ref": f"#/definitions/d{number}"} for number in range(count)}
    each = {"oneOf": [described(**every), STRING]}
    schema = {"$ref": "#/definitions/d0", "definitions": {f"d{number}": each for number in range(count)}}
    assert compare(Level.FULL, read(schema), read(schema), 1) == []


def test_what_is_too_complex_is_told_instead_of_compared_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.registry.formats.json_compare.MOST_PAIRS", 3)
    schema = described(**{f"p{number}": STRING for number in range(10)})
    assert "too complex" in compare(Level.BACKWARD, read(schema), read(schema), 1)[0]

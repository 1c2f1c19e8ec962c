"""Which differences between two JSON schemas matter: one table, whose rows are what Confluent's registry distinguishes.

The question behind every row: does the new schema accept whatever the old one accepted? A row without a text is compatible; one that is
lenient is compatible under `compatibilityPolicy` LENIENT, where an open content model is taken to mean that nothing else is written.
"""

from __future__ import annotations

from enum import StrEnum, auto
from typing import NamedTuple

from headrace.registry.formats.base import Difference

_MISSING = "The keyword at path '{path}' in the %s schema is not present in the %s schema"
_MORE = "The value at path '{path}' in the %s schema is more than its value in the %s schema"
_LESS = "The value at path '{path}' in the %s schema is less than its value in the %s schema"
_OTHER = "The value at path '{path}' is different between the %s and %s schema"
_FEWER = "An array or combined type at path '{path}' has fewer elements in the %s schema than the %s schema"
_FURTHER = "An array or combined type at path '{path}' has more elements in the %s schema than the %s schema"
_TYPE = "A type at path '{path}' is different between the %s schema and the %s schema"
_OPEN = "The %s schema has an open content model and has a property or item at path '{path}' which is missing in the %s schema"
_UNOPEN = "The %s schema has an unopen content model and has a required property at path '{path}' which is missing in the %s schema"
_CLOSED = "The %s has a closed content model and is missing a property or item present at path '{path}' in the %s schema"
_NOT_COVERED = (
    "A property or item is missing in the %s schema but present at path '{path}' in the %s schema and is not covered by its "
    "partially open content model"
)
_ADDED_NOT_COVERED = (
    "The %s schema has a property or item at path '{path}' which is missing in the %s schema and is not covered by its partially "
    "open content model"
)


class Change(StrEnum):
    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return name

    ID_CHANGED = auto()
    TITLE_CHANGED = auto()
    DESCRIPTION_CHANGED = auto()
    DEFAULT_CHANGED = auto()
    SCHEMA_ADDED = auto()
    SCHEMA_REMOVED = auto()
    TYPE_EXTENDED = auto()
    TYPE_NARROWED = auto()
    TYPE_CHANGED = auto()
    MAX_LENGTH_ADDED = auto()
    MAX_LENGTH_REMOVED = auto()
    MAX_LENGTH_INCREASED = auto()
    MAX_LENGTH_DECREASED = auto()
    MIN_LENGTH_ADDED = auto()
    MIN_LENGTH_REMOVED = auto()
    MIN_LENGTH_INCREASED = auto()
    MIN_LENGTH_DECREASED = auto()
    PATTERN_ADDED = auto()
    PATTERN_REMOVED = auto()
    PATTERN_CHANGED = auto()
    MAXIMUM_ADDED = auto()
    MAXIMUM_REMOVED = auto()
    MAXIMUM_INCREASED = auto()
    MAXIMUM_DECREASED = auto()
    MINIMUM_ADDED = auto()
    MINIMUM_REMOVED = auto()
    MINIMUM_INCREASED = auto()
    MINIMUM_DECREASED = auto()
    EXCLUSIVE_MAXIMUM_ADDED = auto()
    EXCLUSIVE_MAXIMUM_REMOVED = auto()
    EXCLUSIVE_MAXIMUM_INCREASED = auto()
    EXCLUSIVE_MAXIMUM_DECREASED = auto()
    EXCLUSIVE_MINIMUM_ADDED = auto()
    EXCLUSIVE_MINIMUM_REMOVED = auto()
    EXCLUSIVE_MINIMUM_INCREASED = auto()
    EXCLUSIVE_MINIMUM_DECREASED = auto()
    MULTIPLE_OF_ADDED = auto()
    MULTIPLE_OF_REMOVED = auto()
    MULTIPLE_OF_EXPANDED = auto()
    MULTIPLE_OF_REDUCED = auto()
    MULTIPLE_OF_CHANGED = auto()
    REQUIRED_ATTRIBUTE_ADDED = auto()
    REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED = auto()
    REQUIRED_ATTRIBUTE_REMOVED = auto()
    MAX_PROPERTIES_ADDED = auto()
    MAX_PROPERTIES_REMOVED = auto()
    MAX_PROPERTIES_INCREASED = auto()
    MAX_PROPERTIES_DECREASED = auto()
    MIN_PROPERTIES_ADDED = auto()
    MIN_PROPERTIES_REMOVED = auto()
    MIN_PROPERTIES_INCREASED = auto()
    MIN_PROPERTIES_DECREASED = auto()
    ADDITIONAL_PROPERTIES_ADDED = auto()
    ADDITIONAL_PROPERTIES_REMOVED = auto()
    ADDITIONAL_PROPERTIES_EXTENDED = auto()
    ADDITIONAL_PROPERTIES_NARROWED = auto()
    UNEVALUATED_PROPERTIES_ADDED = auto()
    UNEVALUATED_PROPERTIES_REMOVED = auto()
    UNEVALUATED_PROPERTIES_EXTENDED = auto()
    UNEVALUATED_PROPERTIES_NARROWED = auto()
    DEPENDENCY_ARRAY_ADDED = auto()
    DEPENDENCY_ARRAY_REMOVED = auto()
    DEPENDENCY_ARRAY_EXTENDED = auto()
    DEPENDENCY_ARRAY_NARROWED = auto()
    DEPENDENCY_ARRAY_CHANGED = auto()
    DEPENDENCY_SCHEMA_ADDED = auto()
    DEPENDENCY_SCHEMA_REMOVED = auto()
    REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    MAX_ITEMS_ADDED = auto()
    MAX_ITEMS_REMOVED = auto()
    MAX_ITEMS_INCREASED = auto()
    MAX_ITEMS_DECREASED = auto()
    MIN_ITEMS_ADDED = auto()
    MIN_ITEMS_REMOVED = auto()
    MIN_ITEMS_INCREASED = auto()
    MIN_ITEMS_DECREASED = auto()
    MAX_CONTAINS_ADDED = auto()
    MAX_CONTAINS_REMOVED = auto()
    MAX_CONTAINS_INCREASED = auto()
    MAX_CONTAINS_DECREASED = auto()
    MIN_CONTAINS_ADDED = auto()
    MIN_CONTAINS_REMOVED = auto()
    MIN_CONTAINS_INCREASED = auto()
    MIN_CONTAINS_DECREASED = auto()
    UNIQUE_ITEMS_ADDED = auto()
    UNIQUE_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_ADDED = auto()
    ADDITIONAL_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_EXTENDED = auto()
    ADDITIONAL_ITEMS_NARROWED = auto()
    UNEVALUATED_ITEMS_ADDED = auto()
    UNEVALUATED_ITEMS_REMOVED = auto()
    UNEVALUATED_ITEMS_EXTENDED = auto()
    UNEVALUATED_ITEMS_NARROWED = auto()
    ITEM_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_TO_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ENUM_ARRAY_EXTENDED = auto()
    ENUM_ARRAY_NARROWED = auto()
    ENUM_ARRAY_CHANGED = auto()
    COMBINED_TYPE_EXTENDED = auto()
    COMBINED_TYPE_CHANGED = auto()
    COMBINED_TYPE_SUBSCHEMAS_CHANGED = auto()
    PRODUCT_TYPE_EXTENDED = auto()
    PRODUCT_TYPE_NARROWED = auto()
    SUM_TYPE_EXTENDED = auto()
    SUM_TYPE_NARROWED = auto()
    NOT_TYPE_EXTENDED = auto()
    NOT_TYPE_NARROWED = auto()


class Rule(NamedTuple):
    text: str = ""
    lenient: bool = False


_BOUND_ABOVE = ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM", "MAX_PROPERTIES", "MAX_ITEMS", "MAX_CONTAINS")
_BOUND_BELOW = ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM", "MIN_PROPERTIES", "MIN_ITEMS", "MIN_CONTAINS")


def _table() -> dict[Change, Rule]:
    table = dict.fromkeys(Change, Rule())
    for bound, tighter, text in (
        *((name, "DECREASED", _LESS) for name in _BOUND_ABOVE),
        *((name, "INCREASED", _MORE) for name in _BOUND_BELOW),
    ):
        table[Change(f"{bound}_ADDED")] = Rule(_MISSING)
        table[Change(f"{bound}_{tighter}")] = Rule(text)
    return table | {
        Change.SCHEMA_ADDED: Rule(_MISSING),
        Change.TYPE_NARROWED: Rule(_TYPE),
        Change.TYPE_CHANGED: Rule(_TYPE),
        Change.PATTERN_ADDED: Rule(_MISSING),
        Change.PATTERN_CHANGED: Rule(_OTHER),
        Change.MULTIPLE_OF_ADDED: Rule(_MISSING),
        Change.MULTIPLE_OF_EXPANDED: Rule(_MORE),
        Change.MULTIPLE_OF_CHANGED: Rule(_OTHER),
        Change.REQUIRED_ATTRIBUTE_ADDED: Rule(_MISSING),
        Change.ADDITIONAL_PROPERTIES_REMOVED: Rule(_MISSING, lenient=True),
        Change.ADDITIONAL_PROPERTIES_NARROWED: Rule(_FEWER, lenient=True),
        Change.UNEVALUATED_PROPERTIES_REMOVED: Rule(_MISSING, lenient=True),
        Change.UNEVALUATED_PROPERTIES_NARROWED: Rule(_FEWER, lenient=True),
        Change.DEPENDENCY_ARRAY_ADDED: Rule(_MISSING),
        Change.DEPENDENCY_ARRAY_EXTENDED: Rule(_FURTHER),
        Change.DEPENDENCY_ARRAY_CHANGED: Rule(_OTHER),
        Change.DEPENDENCY_SCHEMA_ADDED: Rule(_MISSING),
        Change.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: Rule(_OPEN),
        Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL: Rule(_OPEN, lenient=True),
        Change.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: Rule(_OPEN, lenient=True),
        Change.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL: Rule(_UNOPEN),
        Change.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL: Rule(_CLOSED, lenient=True),
        Change.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: Rule(_NOT_COVERED, lenient=True),
        Change.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: Rule(
            _ADDED_NOT_COVERED, lenient=True
        ),
        Change.UNIQUE_ITEMS_ADDED: Rule(_MISSING),
        Change.ADDITIONAL_ITEMS_REMOVED: Rule(_MISSING),
        Change.ADDITIONAL_ITEMS_NARROWED: Rule(_FEWER),
        Change.UNEVALUATED_ITEMS_REMOVED: Rule(_MISSING),
        Change.UNEVALUATED_ITEMS_NARROWED: Rule(_FEWER),
        Change.ITEM_ADDED_TO_OPEN_CONTENT_MODEL: Rule(_OPEN),
        Change.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL: Rule(_CLOSED),
        Change.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: Rule(_NOT_COVERED),
        Change.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: Rule(_ADDED_NOT_COVERED),
        Change.ENUM_ARRAY_NARROWED: Rule(_FEWER),
        Change.ENUM_ARRAY_CHANGED: Rule(_TYPE),
        Change.COMBINED_TYPE_CHANGED: Rule(_TYPE),
        Change.COMBINED_TYPE_SUBSCHEMAS_CHANGED: Rule(_TYPE),
        Change.PRODUCT_TYPE_EXTENDED: Rule(_FURTHER),
        Change.SUM_TYPE_NARROWED: Rule(_FEWER),
        Change.NOT_TYPE_EXTENDED: Rule(_FURTHER),
    }


RULES = _table()


class Found(NamedTuple):
    """A change and its place, from the pair of schemas that was compared downwards."""

    change: Change
    path: tuple[str, ...]

    def matters(self, *, lenient: bool) -> bool:
        rule = RULES[self.change]
        return bool(rule.text) and not (lenient and rule.lenient)

    def told(self) -> Difference:
        path = "#/" + "/".join(self.path)
        description = RULES[self.change].text.format(path=path)
        return Difference(f'{{errorType:"{self.change}", description:"{description}\'}}')

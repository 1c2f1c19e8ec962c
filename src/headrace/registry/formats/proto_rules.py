"""Which differences between two Protobuf schemas matter: one table, whose rows are what Confluent's registry distinguishes.

Protobuf's wire format decides: names are not on the wire, numbers and kinds are. A row without a text is compatible.
"""

from __future__ import annotations

from enum import StrEnum

from headrace.registry.formats.base import Difference


class Change(StrEnum):
    PACKAGE_CHANGED = "PACKAGE_CHANGED"
    MESSAGE_ADDED = "MESSAGE_ADDED"
    MESSAGE_REMOVED = "MESSAGE_REMOVED"
    ENUM_ADDED = "ENUM_ADDED"
    ENUM_REMOVED = "ENUM_REMOVED"
    ENUM_CONST_ADDED = "ENUM_CONST_ADDED"
    ENUM_CONST_CHANGED = "ENUM_CONST_CHANGED"
    ENUM_CONST_REMOVED = "ENUM_CONST_REMOVED"
    FIELD_ADDED = "FIELD_ADDED"
    FIELD_REMOVED = "FIELD_REMOVED"
    FIELD_NAME_CHANGED = "FIELD_NAME_CHANGED"
    FIELD_KIND_CHANGED = "FIELD_KIND_CHANGED"
    FIELD_SCALAR_KIND_CHANGED = "FIELD_SCALAR_KIND_CHANGED"
    FIELD_NAMED_TYPE_CHANGED = "FIELD_NAMED_TYPE_CHANGED"
    FIELD_NUMERIC_LABEL_CHANGED = "FIELD_NUMERIC_LABEL_CHANGED"
    FIELD_STRING_OR_BYTES_LABEL_CHANGED = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
    REQUIRED_FIELD_ADDED = "REQUIRED_FIELD_ADDED"
    REQUIRED_FIELD_REMOVED = "REQUIRED_FIELD_REMOVED"
    ONEOF_ADDED = "ONEOF_ADDED"
    ONEOF_REMOVED = "ONEOF_REMOVED"
    ONEOF_FIELD_ADDED = "ONEOF_FIELD_ADDED"
    ONEOF_FIELD_REMOVED = "ONEOF_FIELD_REMOVED"
    ONEOF_FIELD_MOVED_TO_TOP_LEVEL = "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
    FIELD_MOVED_TO_EXISTING_ONEOF = "FIELD_MOVED_TO_EXISTING_ONEOF"


RULES: dict[Change, str] = {
    Change.PACKAGE_CHANGED: "The package at '{path}' in the %s schema does not match the package in the %s schema",
    Change.MESSAGE_ADDED: "",
    Change.MESSAGE_REMOVED: "The %s schema is missing a MESSAGE type at path '{path}' in the %s schema",
    Change.ENUM_ADDED: "",
    Change.ENUM_REMOVED: "",
    Change.ENUM_CONST_ADDED: "",
    Change.ENUM_CONST_CHANGED: "",
    Change.ENUM_CONST_REMOVED: "",
    Change.FIELD_ADDED: "",
    Change.FIELD_REMOVED: "",
    Change.FIELD_NAME_CHANGED: "",
    Change.FIELD_KIND_CHANGED: (
        "The type of a field at path '{path}' in the %s schema does not match the %s schema"
    ),
    Change.FIELD_SCALAR_KIND_CHANGED: (
        "The kind of a SCALAR field at path '{path}' in the %s schema does not match its kind in the %s schema"
    ),
    Change.FIELD_NAMED_TYPE_CHANGED: (
        "The type of a MESSAGE field at path '{path}' in the %s schema does not match its type in the %s schema"
    ),
    Change.FIELD_NUMERIC_LABEL_CHANGED: (
        "The label for a NUMERIC field at path '{path}' in the %s schema does not match its label in the %s schema"
    ),
    Change.FIELD_STRING_OR_BYTES_LABEL_CHANGED: "",
    Change.REQUIRED_FIELD_ADDED: (
        "A required field  at path '{path}' in the %s schema is missing in the %s schema"
    ),
    Change.REQUIRED_FIELD_REMOVED: (
        "The %s schema is missing a required field at path: '{path}' in the %s schema"
    ),
    Change.ONEOF_ADDED: "",
    Change.ONEOF_REMOVED: "",
    Change.ONEOF_FIELD_ADDED: "",
    Change.ONEOF_FIELD_REMOVED: "The %s schema is missing a oneof field at path '{path}' in the %s schema",
    Change.ONEOF_FIELD_MOVED_TO_TOP_LEVEL: "",
    Change.MULTIPLE_FIELDS_MOVED_TO_ONEOF: (
        "Multiple fields in the oneof at path '{path}' in the %s schema are outside a oneof in the %s schema"
    ),
    Change.FIELD_MOVED_TO_EXISTING_ONEOF: (
        "A field in the oneof at path '{path}' in the %s schema is outside an existing oneof in the %s schema"
    ),
}


def told(change: Change, path: str) -> Difference | None:
    """What is said about a change; None for one that is compatible."""
    text = RULES[change]
    if not text:
        return None
    return Difference(f'{{errorType:"{change}", description:"{text.format(path=path)}"}}')

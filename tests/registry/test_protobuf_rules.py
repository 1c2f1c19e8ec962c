"""Each rule of Protobuf compatibility: a change that it names, and whether the new schema can read what the old one wrote."""

import pytest

from headrace.registry.formats import protobuf
from headrace.registry.formats.compatibility import Level, compare
from headrace.registry.formats.proto_compare import changes
from headrace.registry.formats.proto_rules import RULES, Change

ENUM = "enum E { A = 0; B = 1; } message M { E e = 1; }"

CASES = [
    (Change.PACKAGE_CHANGED, "package a; message M {}", "package b; message M {}"),
    (Change.MESSAGE_ADDED, "message M {}", "message M {} message N {}"),
    (Change.MESSAGE_REMOVED, "message M {} message N {}", "message M {}"),
    (Change.ENUM_ADDED, "message M { int32 e = 1; }", ENUM),
    (Change.ENUM_REMOVED, ENUM, "message M { int32 e = 1; }"),
    (Change.ENUM_CONST_ADDED, ENUM, ENUM.replace("B = 1;", "B = 1; C = 2;")),
    (Change.ENUM_CONST_CHANGED, ENUM, ENUM.replace("B = 1;", "C = 1;")),
    (Change.ENUM_CONST_REMOVED, ENUM, ENUM.replace("B = 1;", "")),
    (Change.FIELD_ADDED, "message M {}", "message M { int32 a = 1; }"),
    (Change.FIELD_REMOVED, "message M { int32 a = 1; }", "message M {}"),
    (Change.FIELD_NAME_CHANGED, "message M { int32 a = 1; }", "message M { int32 b = 1; }"),
    (Change.FIELD_KIND_CHANGED, "message M { int32 a = 1; }", "message M { M a = 1; }"),
    (Change.FIELD_SCALAR_KIND_CHANGED, "message M { int32 a = 1; }", "message M { string a = 1; }"),
    (
        Change.FIELD_NAMED_TYPE_CHANGED,
        "message M { N a = 1; } message N {} message O {}",
        "message M { O a = 1; } message N {} message O {}",
    ),
    (Change.FIELD_NUMERIC_LABEL_CHANGED, "message M { int32 a = 1; }", "message M { repeated int32 a = 1; }"),
    (
        Change.FIELD_STRING_OR_BYTES_LABEL_CHANGED,
        "message M { string a = 1; }",
        "message M { repeated string a = 1; }",
    ),
    (Change.REQUIRED_FIELD_ADDED, "proto2 message M {}", "proto2 message M { required int32 a = 1; }"),
    (Change.REQUIRED_FIELD_REMOVED, "proto2 message M { required int32 a = 1; }", "proto2 message M {}"),
    (Change.ONEOF_ADDED, "message M { int32 a = 1; }", "message M { oneof x { int32 a = 1; } }"),
    (Change.ONEOF_REMOVED, "message M { oneof x { int32 a = 1; } }", "message M {}"),
    (
        Change.ONEOF_FIELD_ADDED,
        "message M { oneof x { int32 a = 1; } }",
        "message M { oneof x { int32 a = 1; int32 b = 2; } }",
    ),
    (
        Change.ONEOF_FIELD_REMOVED,
        "message M { oneof x { int32 a = 1; int32 b = 2; } }",
        "message M { oneof x { int32 a = 1; } }",
    ),
    (
        Change.ONEOF_FIELD_MOVED_TO_TOP_LEVEL,
        "message M { oneof x { int32 a = 1; int32 b = 2; } }",
        "message M { oneof x { int32 a = 1; } int32 b = 2; }",
    ),
    (
        Change.MULTIPLE_FIELDS_MOVED_TO_ONEOF,
        "message M { int32 a = 1; int32 b = 2; }",
        "message M { oneof x { int32 a = 1; int32 b = 2; } }",
    ),
    (
        Change.FIELD_MOVED_TO_EXISTING_ONEOF,
        "message M { oneof x { int32 a = 1; } int32 b = 2; }",
        "message M { oneof x { int32 a = 1; int32 b = 2; } }",
    ),
]


def schema(text: str) -> protobuf.ProtobufSchema:
    syntax = "proto2" if text.startswith("proto2 ") else "proto3"
    return protobuf.read(f'syntax = "{syntax}"; {text.removeprefix("proto2 ")}', {}, new=True)


def test_every_rule_has_a_case() -> None:
    assert {change for change, _, _ in CASES} == set(RULES) == set(Change)


@pytest.mark.parametrize(("change", "old", "new"), CASES, ids=[str(change) for change, _, _ in CASES])
def test_a_rule(change: Change, old: str, new: str) -> None:
    before, after = schema(old), schema(new)
    assert change in [found for found, _ in changes(before._side, after._side)]
    messages = compare(Level.BACKWARD, after, before, 1)
    assert [f'{{errorType:"{change}"' in each for each in messages].count(True) == bool(RULES[change])
    if not RULES[change]:
        assert messages == []


def test_maps_are_compared_by_their_keys_and_values() -> None:
    def read(kind: str) -> protobuf.ProtobufSchema:
        return schema(f"message M {{ map<string, {kind}> a = 1; }}")

    assert compare(Level.FULL, read("int64"), read("int32"), 1) == []
    assert "FIELD_SCALAR_KIND_CHANGED" in compare(Level.BACKWARD, read("string"), read("int32"), 1)[0]


def test_a_type_from_a_reference_is_compared_where_the_reference_changed() -> None:
    def read(inner: str) -> protobuf.ProtobufSchema:
        head = 'syntax = "proto3"; package p;'
        text = f'{head} import "n.proto"; message M {{ N n = 1; }}'
        return protobuf.read(text, {"n.proto": f"{head} message N {{ {inner} a = 1; }}"}, new=True)

    assert compare(Level.BACKWARD, read("int64"), read("int32"), 1) == []
    messages = compare(Level.BACKWARD, read("string"), read("int32"), 1)
    assert any("FIELD_NAMED_TYPE_CHANGED" in each and "#/M/1" in each for each in messages)


def test_recursive_messages_are_compared_once() -> None:
    tree = "message Tree { Tree left = 1; Tree right = 2; int32 value = 3; }"
    assert compare(Level.FULL, schema(tree), schema(tree), 1) == []
    assert compare(Level.FULL, schema(tree.replace("int32", "string")), schema(tree), 1)

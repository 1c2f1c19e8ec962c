"""Records print as Kafka's default message formatter prints them."""

from __future__ import annotations

import struct

import pytest
from confluent_kafka import Message

from headrace.cli.failure import Failure
from headrace.cli.view.records.text_format import TextFormat

HEADERS: list[tuple[str, bytes | None]] = [("h1", b"v1"), ("h2", None)]
RECORD = Message(
    topic="t", partition=1, offset=5, key=b"k", value=b"v", headers=HEADERS, timestamp=(1, 1700000000000)
)


def line(properties: dict[str, str], message: Message = RECORD) -> bytes:
    return TextFormat.from_properties(properties).line(message)


def test_by_default_a_record_is_its_value() -> None:
    assert line({}) == b"v\n"


def test_all_parts_come_in_kafkas_order() -> None:
    switches = {f"print.{part}": "true" for part in ("key", "offset", "partition", "timestamp", "headers")}
    assert line(switches) == b"CreateTime:1700000000000\tPartition:1\tOffset:5\th1:v1,h2:null\tk\tv\n"


def test_separators_and_the_null_literal_are_the_users() -> None:
    properties = {
        "print.key": "true",
        "print.headers": "true",
        "key.separator": " | ",
        "line.separator": ";",
        "headers.separator": "&",
        "null.literal": "NIL",
    }
    assert line(properties) == b"h1:v1&h2:NIL | k | v;"


def test_a_record_without_headers_or_time_says_so() -> None:
    bare = Message(topic="t", partition=0, offset=0, value=None, timestamp=(0, -1))
    assert (
        line({"print.headers": "true", "print.timestamp": "true"}, bare)
        == b"NO_TIMESTAMP\tNO_HEADERS\tnull\n"
    )


def test_a_value_can_be_left_out() -> None:
    assert line({"print.key": "true", "print.value": "false"}) == b"k\n"


def test_javas_number_deserializers_are_known_by_their_class_names() -> None:
    counted = Message(
        topic="t",
        partition=0,
        offset=0,
        key=struct.pack(">i", -3),
        value=struct.pack(">q", 7),
        timestamp=(1, 0),
    )
    properties = {
        "print.key": "true",
        "key.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer",
        "value.deserializer": "org.apache.kafka.common.serialization.LongDeserializer",
    }
    assert line(properties, counted) == b"-3\t7\n"


def test_a_deserializer_of_somebodys_own_is_refused() -> None:
    with pytest.raises(Failure, match=r"com\.example\.Own is Java code"):
        line({"value.deserializer": "com.example.Own"})

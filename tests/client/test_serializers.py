"""Values to bytes and back, and what is said when that cannot be done."""

from __future__ import annotations

import dataclasses
import sys

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import BaseModel

from headrace.client import DeserializationError, MissingExtra, Record, SerializationError, serializers
from headrace.client.serializers import Serializer, as_serializer


@dataclasses.dataclass
class Order:
    order_id: int
    items: list[str]


class Payment(BaseModel):
    payment_id: int
    amount: float


AVRO = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "sensor", "type": "string"}, {"name": "value", "type": "double"}],
}


@pytest.mark.parametrize(
    ("serializer", "value"),
    [
        (serializers.raw(), b"\x00\xff"),
        (serializers.text(), "grüße"),
        (serializers.text("utf-16"), "grüße"),
        (serializers.json(), {"a": [1, None, "x"]}),
        (serializers.json(Order), Order(7, ["tea"])),
        (serializers.pydantic(Payment), Payment(payment_id=1, amount=2.5)),
        (serializers.avro(AVRO), {"sensor": "a", "value": 1.5}),
        (serializers.avro('"string"'), "text"),
        (serializers.protobuf(Timestamp), Timestamp(seconds=5)),
    ],
)
def test_what_is_serialized_comes_back_equal(serializer: Serializer[object], value: object) -> None:
    assert serializer.deserialize(serializer.serialize(value)) == value


def test_a_newer_avro_reader_reads_older_records() -> None:
    newer = {**AVRO, "fields": [*AVRO["fields"], {"name": "unit", "type": "string", "default": "C"}]}
    old = serializers.avro(AVRO).serialize({"sensor": "a", "value": 1.0})
    read = serializers.avro(AVRO, reader_schema=newer).deserialize(old)
    assert read == {"sensor": "a", "value": 1.0, "unit": "C"}


def test_a_value_that_does_not_fit_is_refused_with_its_type() -> None:
    with pytest.raises(SerializationError, match="a value of type int cannot be serialized"):
        as_serializer(serializers.text(), "value")(5)
    with pytest.raises(SerializationError, match="only bytes and str"):
        as_serializer(None, "key")({"not": "bytes"})


def test_null_is_never_serialized_nor_decoded() -> None:
    assert as_serializer(serializers.json(), "value")(None) is None
    tombstone = Record("t", 0, 0, value_deserializer=serializers.json().deserialize)
    assert tombstone.value is None


@pytest.mark.parametrize(
    "serializer",
    [
        serializers.json(Order),
        serializers.pydantic(Payment),
        serializers.avro(AVRO),
        serializers.protobuf(Timestamp),
    ],
)
def test_a_poison_value_fails_where_it_is_used_and_names_the_record(serializer: Serializer[object]) -> None:
    record = Record("orders", 3, 42, value=b"\xff{not it", value_deserializer=serializer.deserialize)
    assert record.raw_value == b"\xff{not it"
    with pytest.raises(DeserializationError, match="the value of orders-3@42 cannot be decoded"):
        _ = record.value


def test_bytes_left_over_by_avro_are_an_error() -> None:
    data = serializers.avro('"string"').serialize("a") + b"more"
    with pytest.raises(ValueError, match="4 bytes are left over"):
        serializers.avro('"string"').deserialize(data)


@pytest.mark.parametrize(
    ("module", "extra", "make"),
    [
        ("msgspec", "json", lambda: serializers.json()),
        ("pydantic", "pydantic", lambda: serializers.pydantic(Payment)),
        ("fastavro", "avro", lambda: serializers.avro('"string"')),
        ("google.protobuf", "protobuf", lambda: serializers.protobuf(Timestamp)),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    module: str, extra: str, make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'headrace\[{extra}\]'"):
        make()  # type: ignore[operator]


def test_a_record_finds_its_last_header_and_its_time() -> None:
    record = Record("t", 0, 0, headers=(("a", b"1"), ("a", b"2"), ("b", None)), timestamp=1_700_000_000_000)
    assert (record.header("a"), record.header("b"), record.header("c")) == (b"2", None, None)
    assert record.time is not None
    assert record.time.isoformat() == "2023-11-14T22:13:20+00:00"

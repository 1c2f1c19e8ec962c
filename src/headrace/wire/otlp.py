"""Reads the metrics that clients push (KIP-714): OpenTelemetry's MetricsData, in protobuf.

Only what clients send is read: gauges, sums and histograms, with the labels of their resource and of each point. Unknown
fields are skipped, as protobuf asks for. Whatever the bytes are, the only exception is OtlpError, and the work is bounded by
`MOST_FIELDS`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

MOST_FIELDS = 400_000
"""A push of 1,000 series has some 20,000."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE = struct.Struct("<d")
_SIGNED = struct.Struct("<q")
_UNSIGNED = struct.Struct("<Q")


class OtlpError(ValueError):
    """The bytes are no metrics."""


class Temporality(IntEnum):
    """Whether a sum or histogram counts from its start or since the last push; gauges have none."""

    NONE = 0
    DELTA = 1
    CUMULATIVE = 2


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram's point: how many values, their sum, and how many up to each bound; the last count has no bound."""

    count: int
    sum: float
    bounds: tuple[float, ...]
    counts: tuple[int, ...]


Labels = tuple[tuple[str, str], ...]


class Series(NamedTuple):
    """One point of one metric."""

    name: str
    labels: Labels
    value: float | Distribution
    monotonic: bool = False
    """A sum that only grows: a counter."""
    temporality: Temporality = Temporality.NONE
    unit: str = ""
    time_ns: int = 0


_Value = int | memoryview
_Fields = Iterator[tuple[int, int, _Value]]


class _Reader:
    """Splits messages into fields, and gives up when there are too many."""

    def __init__(self) -> None:
        self._left = MOST_FIELDS

    def count(self, fields: int) -> None:
        self._left -= fields
        if self._left < 0:
            raise OtlpError(f"more than {MOST_FIELDS} fields")

    def fields(self, data: memoryview) -> _Fields:
        """(number, wire type, value); a fixed value comes as its bytes."""
        position, end = 0, len(data)
        while position < end:
            self.count(1)
            tag, position = _varint(data, position)
            number, kind = tag >> 3, tag & 7
            if number == 0:
                raise OtlpError("a field without a number")
            if kind == _VARINT:
                value, position = _varint(data, position)
                yield number, kind, value
                continue
            if kind == _BYTES:
                size, position = _varint(data, position)
            elif kind == _FIXED64:
                size = 8
            elif kind == _FIXED32:
                size = 4
            else:
                raise OtlpError(f"unknown wire type {kind}")
            if size > end - position:
                raise OtlpError("a field goes beyond the end")
            yield number, kind, data[position : position + size]
            position += size

    def messages(self, data: memoryview, number: int) -> Iterator[memoryview]:
        """The inner messages of one field."""
        for found, kind, value in self.fields(data):
            if found == number and kind == _BYTES:
                assert not isinstance(value, int)
                yield value


def read_metrics(data: bytes | memoryview) -> Iterator[Series]:
    """Every series of a MetricsData message, as far as it can be read: an error comes where it is found."""
    reader = _Reader()
    for resource_metrics in reader.messages(memoryview(data), 1):
        labels = tuple(
            _attribute(reader, each)
            for resource in reader.messages(resource_metrics, 1)
            for each in reader.messages(resource, 1)
        )
        for scope in reader.messages(resource_metrics, 2):
            for metric in reader.messages(scope, 2):
                yield from _metric(reader, metric, labels)


def _metric(reader: _Reader, data: memoryview, resource: Labels) -> Iterator[Series]:
    name = unit = ""
    points: list[tuple[int, memoryview]] = []
    for number, kind, value in reader.fields(data):
        if kind != _BYTES:
            continue
        assert not isinstance(value, int)
        if number == 1:
            name = _text(value)
        elif number == 3:
            unit = _text(value)
        elif number in (_GAUGE, _SUM, _HISTOGRAM):
            points.append((number, value))
    if not name:
        raise OtlpError("a metric without a name")
    for form, body in points:
        yield from _points(reader, form, body, name, unit, resource)


_GAUGE, _SUM, _HISTOGRAM = 5, 7, 9


def _points(
    reader: _Reader, form: int, data: memoryview, name: str, unit: str, resource: Labels
) -> Iterator[Series]:
    monotonic, temporality = False, Temporality.NONE
    points: list[memoryview] = []
    for number, kind, value in reader.fields(data):
        if isinstance(value, int):
            if kind == _VARINT and form != _GAUGE and number == 2:
                try:
                    temporality = Temporality(value)
                except ValueError:
                    raise OtlpError(f"unknown aggregation temporality {value}") from None
            elif form == _SUM and number == 3:
                monotonic = bool(value)
        elif number == 1 and kind == _BYTES:
            points.append(value)
    read = _distribution if form == _HISTOGRAM else _number
    for point in points:
        labels, found, time_ns = read(reader, point)
        if found is not None:
            # Each series carries them: many times many is much work for few bytes.
            reader.count(len(resource))
            yield Series(name, resource + labels, found, monotonic, temporality, unit, time_ns)


def _number(reader: _Reader, data: memoryview) -> tuple[Labels, float | None, int]:
    labels: list[tuple[str, str]] = []
    found: float | None = None
    time_ns = 0
    for number, kind, value in reader.fields(data):
        if isinstance(value, int):
            continue
        if number == 7 and kind == _BYTES:
            labels.append(_attribute(reader, value))
        elif kind == _FIXED64:
            if number == 3:
                time_ns = _UNSIGNED.unpack(value)[0]
            elif number == 4:
                found = _DOUBLE.unpack(value)[0]
            elif number == 6:
                found = _SIGNED.unpack(value)[0]
    return tuple(labels), found, time_ns


def _distribution(reader: _Reader, data: memoryview) -> tuple[Labels, Distribution, int]:
    labels: list[tuple[str, str]] = []
    count, total, time_ns = 0, 0.0, 0
    counts: list[int] = []
    bounds: list[float] = []
    for number, kind, value in reader.fields(data):
        if isinstance(value, int):
            continue
        if kind == _FIXED64:
            if number == 3:
                time_ns = _UNSIGNED.unpack(value)[0]
            elif number == 4:
                count = _UNSIGNED.unpack(value)[0]
            elif number == 5:
                total = _DOUBLE.unpack(value)[0]
            elif number == 6:
                counts.append(_UNSIGNED.unpack(value)[0])
            elif number == 7:
                bounds.append(_DOUBLE.unpack(value)[0])
        elif kind == _BYTES:
            if number == 6:
                counts += [each[0] for each in _UNSIGNED.iter_unpack(_whole(value))]
            elif number == 7:
                bounds += [each[0] for each in _DOUBLE.iter_unpack(_whole(value))]
            elif number == 9:
                labels.append(_attribute(reader, value))
    if (counts or bounds) and len(counts) != len(bounds) + 1:
        raise OtlpError(f"a histogram with {len(bounds)} bounds and {len(counts)} counts")
    return tuple(labels), Distribution(count, total, tuple(bounds), tuple(counts)), time_ns


def _whole(packed: memoryview) -> memoryview:
    if len(packed) % 8:
        raise OtlpError("packed numbers of 8 bytes that do not come out even")
    return packed


def _attribute(reader: _Reader, data: memoryview) -> tuple[str, str]:
    """A KeyValue, the value as text."""
    key = text = ""
    for number, kind, value in reader.fields(data):
        if kind == _BYTES and not isinstance(value, int):
            if number == 1:
                key = _text(value)
            elif number == 2:
                text = _any_value(reader, value)
    return key, text


def _any_value(reader: _Reader, data: memoryview) -> str:
    """Lists, maps and bytes stay empty: no client labels a metric with them."""
    text = ""
    for number, kind, value in reader.fields(data):
        if isinstance(value, int):
            if number == 2:
                text = "true" if value else "false"
            elif number == 3:
                text = str(value - (1 << 64) if value >= 1 << 63 else value)
        elif number == 1 and kind == _BYTES:
            text = _text(value)
        elif number == 4 and kind == _FIXED64:
            text = str(_DOUBLE.unpack(value)[0])
    return text


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise OtlpError("text that is not UTF-8") from None


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(data):
            raise OtlpError("a number goes beyond the end")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise OtlpError("a number of more than ten bytes")

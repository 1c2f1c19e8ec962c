"""What `consume --json` prints, `produce --from-json` reads back."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from headrace.cli.failure import Failure
from headrace.cli.view.records.json_format import from_json, to_json
from headrace.cli.view.records.record import Record


def test_a_printed_record_reads_back_as_it_was() -> None:
    headers: list[tuple[str, bytes | None]] = [("h", b"1"), ("h", None), ("raw", b"\xff")]
    message = Message(
        topic="t",
        partition=2,
        offset=9,
        key=b"\x80k",
        value="café".encode(),
        headers=headers,
        timestamp=(1, 1234),
    )
    record = from_json(to_json(message).encode(), 1)
    assert record == Record("café".encode(), b"\x80k", headers, 2, 1234)


def test_a_tombstone_has_a_null_value() -> None:
    assert from_json(b'{"key": "k", "value": null}', 1) == Record(None, b"k")


def test_a_value_that_is_an_object_is_sent_as_its_text() -> None:
    assert from_json(b'{"value": {"a": [1, 2]}}', 1) == Record(b'{"a":[1,2]}')


def test_headers_may_be_an_object() -> None:
    assert from_json(b'{"value": "v", "headers": {"a": "1"}}', 1) == Record(b"v", headers=[("a", b"1")])


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[]",
        b"{}",
        b'{"value": "v", "valeu": 1}',
        b'{"value": {"base64": "*"}}',
        b'{"value": "", "headers": 3}',
        b'{"value": "", "partition": "0"}',
    ],
)
def test_a_line_that_is_no_record_is_refused_with_its_number(line: bytes) -> None:
    with pytest.raises(Failure, match="Line 5"):
        from_json(line, 5)

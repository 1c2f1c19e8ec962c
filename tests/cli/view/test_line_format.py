"""Lines become records as Kafka's console producer makes them."""

from __future__ import annotations

import pytest

from headrace.cli.failure import Failure, Misuse
from headrace.cli.view.records.line_format import LineFormat
from headrace.cli.view.records.record import Record


def parse(line: str, number: int = 1, **properties: str) -> Record:
    names = {name.replace("_", "."): value for name, value in properties.items()}
    return LineFormat.from_properties(names).parse(line.encode(), number)


def test_a_line_is_a_value() -> None:
    assert parse("a\tb") == Record(b"a\tb")


def test_the_key_ends_at_the_first_separator() -> None:
    assert parse("k:v:w", parse_key="true", key_separator=":") == Record(b"v:w", b"k")


def test_headers_come_first() -> None:
    record = parse("h1:v1,h2:v2\tk\tv", parse_key="true", parse_headers="true")
    assert record == Record(b"v", b"k", [("h1", b"v1"), ("h2", b"v2")])


def test_the_null_marker_stands_for_no_key_no_value_and_no_header_value() -> None:
    record = parse("h:NIL\tNIL\tNIL", parse_key="true", parse_headers="true", null_marker="NIL")
    assert record == Record(None, None, [("h", None)])


def test_the_null_marker_in_place_of_headers_means_none() -> None:
    assert parse("NIL\tv", parse_headers="true", null_marker="NIL") == Record(b"v")


def test_a_line_without_its_separator_is_refused_with_its_number() -> None:
    with pytest.raises(Failure, match="No key separator found on line number 7: 'no key'"):
        parse("no key", 7, parse_key="true")


def test_with_errors_ignored_a_line_without_its_separator_is_a_value() -> None:
    assert parse("no key", parse_key="true", ignore_error="true") == Record(b"no key")


def test_a_header_name_is_never_null() -> None:
    with pytest.raises(Failure, match="names are never null"):
        parse("NIL:v\tx", parse_headers="true", null_marker="NIL")


@pytest.mark.parametrize(
    "properties",
    [
        {"headers.separator": ":"},
        {"headers.delimiter": ","},
        {"key.separator": "N", "null.marker": "N"},
        {"key.separator": ""},
    ],
)
def test_separators_that_cannot_be_told_apart_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(Misuse):
        LineFormat.from_properties(properties)


def test_bytes_that_are_no_text_pass_untouched() -> None:
    assert LineFormat(parse_key=True).parse(b"\xff\t\xfe", 1) == Record(b"\xfe", b"\xff")

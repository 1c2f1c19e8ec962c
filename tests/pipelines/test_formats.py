"""Formats, value by value; tests/pipelines/test_topics.py has them in a pipeline."""

import pytest
from google.protobuf.type_pb2 import Field

from headrace.pipelines.formats.protobuf import _fill, _to_row


@pytest.mark.parametrize("kind", [Field.TYPE_BOOL, 99])
def test_an_enum_of_protobuf_is_its_name_and_a_number_without_one_survives(kind):
    message = Field(kind=kind, number=7)
    row = _to_row(message)
    assert row["kind"] == {Field.TYPE_BOOL: "TYPE_BOOL", 99: "99"}[kind]
    written = Field()
    _fill(written, row)
    assert written == message

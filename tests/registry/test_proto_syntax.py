"""Texts that are no .proto files: each is refused with a line and a column, wherever it goes wrong."""

from contextlib import suppress

import pytest

from headrace.registry.errors import InvalidSchema
from headrace.registry.formats.proto_parse import parse

WHOLE = """
syntax = "proto2";
package a.b;
import public "c.proto";
option java_package = "a\\x41" "b";
message M {
  option deprecated = true;
  optional group G = 1 { required int32 x = 1 [default = -1, (y).z = { a: 1 }]; }
  map<string, .a.b.M> maps = 2;
  oneof o { option (p) = 1; group H = 3 {} string s = 4; }
  reserved 5 to 6, 8 to max;
  extensions 7;
  enum E { option allow_alias = true; reserved "R"; A = 0; B = 0x1 [deprecated = true]; }
  extend M { repeated string e = 7; }
}
service S { rpc Call (stream M) returns (stream M) { option deprecated = true; } }
""".strip()


def test_a_part_of_a_file_is_read_or_refused() -> None:
    assert parse(WHOLE, "whole.proto").package == "a.b"
    words = WHOLE.split(" ")
    for count in range(1, len(words)):
        with suppress(InvalidSchema):  # a part may be a file, too
            parse(" ".join(words[:count]), "part.proto")


@pytest.mark.parametrize("text", ["optional group", "oneof x { option", "oneof x { group"])
def test_a_file_that_ends_where_more_has_to_be_seen_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="the end of the file"):
        parse(f"message M {{ {text}", "part.proto")


@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000"])
def test_a_character_that_unicode_does_not_have_is_refused(escape: str) -> None:
    with pytest.raises(InvalidSchema, match=r"1:23: .* names a character"):
        parse(f'option java_package = "{escape}";', "m.proto")

from pathlib import Path

import pytest

from headrace.server.config.definition import ConfigError
from headrace.server.config.properties import parse_properties, read_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("  a\t=\tb", {"a": "b"}),
        ("a", {"a": ""}),
        ("# a=b\n! c=d\n\n  # e=f", {}),
        ("a=b # not a comment", {"a": "b # not a comment"}),
        ("a=one,\\\n   two,\\\n   three", {"a": "one,two,three"}),
        ("a=ends\\\\\nb=c", {"a": "ends\\", "b": "c"}),
        ("a=b\\", {"a": "b"}),
        (r"a\ b\==\tc\u00e9\n", {"a b=": "\tcé\n"}),
        (r"a=\ud83d\ude00", {"a": "😀"}),
        (r"path=C\:\\logs", {"path": r"C:\logs"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a==b", {"a": "=b"}),
        ("a=b\\\n# still the value", {"a": "b# still the value"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_malformed_escape_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(r"a=\u12")
    with pytest.raises(ConfigError, match=r"server\.properties.*four hexadecimal digits"):
        read_properties(path)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read .*No such file"):
        read_properties(tmp_path / "absent.properties")


def test_a_latin_1_file_is_read_as_java_would(tmp_path: Path) -> None:
    path = tmp_path / "old.properties"
    path.write_bytes("broker.rack=Zürich".encode("latin-1"))
    assert read_properties(path) == {"broker.rack": "Zürich"}

"""JAAS lines as people write them for Kafka."""

import pytest

from headrace.link.errors import SettingsError
from headrace.link.jaas import parse_jaas


@pytest.mark.parametrize(
    ("text", "module", "options"),
    [
        (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" user_my-app.1="x;y" ;',
            "PlainLoginModule",
            {"username": "a", "user_my-app.1": "x;y"},
        ),
        ('x.Y required a = "1"\n  b=\'2\'\tc=3;', "Y", {"a": "1", "b": "2", "c": "3"}),
        (r'x.Y required password="a\"b\\c" empty="";', "Y", {"password": 'a"b\\c', "empty": ""}),
        ("/* of the\n broker */ x.Y required // who\n a=1;  // done", "Y", {"a": "1"}),
        ("x.Y optional", "Y", {}),
        ('x.Y required useKeyTab=true keyTab="/a b/k.keytab" principal="kafka/h@R";', "Y",
         {"useKeyTab": "true", "keyTab": "/a b/k.keytab", "principal": "kafka/h@R"}),
    ],
)  # fmt: skip
def test_a_line_is_read_as_kafka_reads_it(text, module, options):
    entry = parse_jaas(text)
    assert (entry.module, dict(entry.options)) == (module, options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x.Y",
        'x.Y required password="hush',
        "x.Y required a=1; x.Z required b=2;",
        "x.Y required a=1 junk;",
    ],
)
def test_what_is_no_line_is_refused_without_being_shown(text):
    with pytest.raises(SettingsError, match=r"sasl\.jaas\.config cannot be read") as caught:
        parse_jaas(text)
    assert "hush" not in str(caught.value)

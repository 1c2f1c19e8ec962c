"""`headrace mirror` from the making of a link to its end."""

from __future__ import annotations

import pytest

from headrace.testing.broker import BrokerThread
from tests.server.mirror.dc import produce
from tests.waiting import until


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    with BrokerThread(tmp_path_factory.mktemp("source")) as broker:
        yield broker


def test_a_link_from_its_making_to_its_end(headrace, broker, source, tmp_path):
    topic = source.create_topic("orders", partitions=2)
    produce(source.bootstrap, topic, b"a", b"b")
    make = ("mirror", "create", "dc1", "--source", source.bootstrap, "--topics", "*", "--groups", "g.*")
    refused = headrace(*make)
    assert (refused.code, refused.out) == (1, "")
    assert "headrace features set mirror.version=1" in refused.err
    headrace("features", "set", "mirror.version=1")
    config = tmp_path / "source.properties"
    config.write_text("refresh.topics.interval.seconds=1\nsasl.jaas.config=very secret\n")
    assert f"copies from {source.bootstrap}" in headrace(*make, "--config", config).out

    def link():
        return headrace("mirror", "status", "dc1", "--json").json

    def lag():
        return [each["lag_records"] for made in link()["topics"] for each in made["partitions"]]

    until(lambda: lag() == [0, 0], "the copy")
    assert link()["settings"]["sasl.jaas.config"] is None
    assert "secret" not in headrace("mirror", "status", "dc1", "--json").out
    shown = headrace("mirror", "status", "dc1").lines
    assert shown[0] == f"dc1: active, from {source.bootstrap}"
    assert shown[-2].split() == ["TOPIC", "STATE", "PARTITIONS", "LAG", "BYTES", "SECONDS", "MISSED"]
    assert shown[-1].split() == ["orders", "mirroring", "2", "0", "0", "B", "0.0", "0"]
    assert headrace("mirror", "status", "dc1", "--partitions").lines[-1].split()[:4] == [
        "orders",
        "1",
        "0",
        "0",
    ]
    assert headrace("mirror", "list").lines[1].split()[:5] == ["dc1", source.bootstrap, "active", "1", "2"]

    refused = headrace("produce", topic, stdin="here\n")
    assert refused.code == 1
    assert "a mirrored topic takes none until it is failed over ('headrace mirror list')" in refused.err
    assert headrace("mirror", "pause", "dc1").out == "The mirror link dc1 is paused.\n"
    assert headrace("mirror", "list", "--json").json[0]["state"] == "paused"
    assert headrace("mirror", "resume", "dc1").out == "The mirror link dc1 copies.\n"
    kept = headrace("mirror", "delete", "dc1")
    assert kept.code == 1
    assert "still owns orders; fail over ('headrace mirror failover dc1')" in kept.err

    ended = headrace("mirror", "failover", "dc1")
    assert ended.lines[0].split("  ")[0] == "TOPIC"
    assert ended.lines[1].split()[:4] == ["orders", "0", "1", "0"]
    assert ended.lines[2].split()[:4] == ["orders", "1", "-", "0"]
    assert ended.lines[-1] == "0 records of the source are known to be missing."
    assert headrace("mirror", "failover", "dc1").out == "Nothing is left to fail over.\n"
    assert headrace("mirror", "delete", "dc1").out == "The mirror link dc1 is deleted.\n"
    assert headrace("mirror", "list", "--json").json == []
    assert produce(broker.bootstrap, topic, b"here").base_offset == 2


def test_a_failback_copies_what_is_new_and_refuses_what_would_be_overwritten(headrace, broker, source):
    headrace("features", "set", "mirror.version=1")
    back = ("--bootstrap-server", source.bootstrap)
    headrace("features", "set", "mirror.version=1", *back)
    for topic in ("good", "parted"):
        source.create_topic(topic)
        produce(source.bootstrap, topic, b"0")
    make = ("mirror", "create", "dc", "--source", source.bootstrap, "--topics", "good,parted")
    assert headrace(*make).code == 0

    def ends():
        link = headrace("mirror", "status", "dc", "--json").json
        return [each["end_offset"] for made in link["topics"] for each in made["partitions"]]

    until(lambda: ends() == [1, 1], "the copy")
    assert headrace("mirror", "failover", "dc").code == 0
    produce(broker.bootstrap, "good", b"1")
    produce(source.bootstrap, "parted", b"only at the source")
    ran = headrace("mirror", "failback", "dc", "--source", broker.bootstrap)
    assert ran.code == 1
    assert "from offset 1 on: 1 of them are only here" in ran.out
    assert "headrace mirror resume dc --topics parted --discard" in ran.err
    assert headrace("mirror", "resume", "dc", "--discard", *back).code == 2
    assert headrace("mirror", "resume", "dc", "--topics", "parted", "--discard", *back).code == 0

    def states():
        return {
            topic["name"]: (topic["state"], [each["end_offset"] for each in topic["partitions"]])
            for topic in headrace("mirror", "status", "dc", "--json", *back).json["topics"]
        }

    until(lambda: states() == {"good": ("mirroring", [2]), "parted": ("mirroring", [1])}, "the way back")
    assert headrace("mirror", "failover", "dc", *back).code == 0
    assert produce(source.bootstrap, "good", b"2").base_offset == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("status", "dc9"), "There is no mirror link 'dc9'."),
        (("pause", "dc9"), "There is no mirror link 'dc9'"),
        (("create", "dc9", "--source", "nowhere", "--topics", "a"), "--source takes HOST:PORT"),
        (("create", "dc9", "--source", "h:1", "--topics", " , "), "--topics names no topic"),
        (("create", "dc9", "--source", "h:1", "--topics", "a("), "'a(' is no regular expression"),
        (("create", "d/9", "--source", "h:1", "--topics", "a"), "'d/9' cannot name a mirror link"),
    ],
)
def test_mistakes_are_sentences(headrace, arguments, sentence):
    headrace("features", "set", "mirror.version=1")
    ran = headrace("mirror", *arguments)
    assert ran.code != 0
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1

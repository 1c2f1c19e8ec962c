"""`headrace backlog` as a user runs it: a divert, its status, its join, and each refusal as one sentence."""

from __future__ import annotations

from headrace.client import Admin, Producer, TopicPartition
from tests.cli.conftest import Headrace


def prepare(bootstrap: str, name: str) -> tuple[str, str]:
    topic, group = f"{name}-orders", f"{name}-billing"
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        admin.create_topic(topic, partitions=1, replication_factor=1)
        for number in range(30):
            producer.send_and_forget(topic, str(number))
        producer.flush()
        admin.set_group_offsets(group, {TopicPartition(topic, 0): 10})
    return topic, group


def move(bootstrap: str, group: str, topic: str, offset: int) -> None:
    with Admin(bootstrap) as admin:
        admin.set_group_offsets(group, {TopicPartition(topic, 0): offset})


def test_a_backlog_is_diverted_watched_and_joined(headrace: Headrace, bootstrap: str, name: str) -> None:
    topic, group = prepare(bootstrap, name)
    asked = (group, "--topic", topic)
    diverted = headrace("backlog", "divert", *asked)
    assert diverted.code == 0, diverted.err
    assert f"Group {group} has 20 records of {topic} behind the cut:" in diverted.out
    assert f"group.id={group}.backlog on topic {topic}" in diverted.out
    assert "handled twice" in diverted.out

    shown = headrace("backlog", "status", group, "--window", "0.5s", "--partitions")
    assert shown.code == 0, shown.err
    assert "diverted by offsets, 20 records of backlog" in shown.out
    assert any(line.split()[:2] == ["backlog", f"{group}.backlog"] for line in shown.lines)
    assert "Next: Nobody drains the backlog" in shown.out
    (document,) = headrace("backlog", "status", group, "--window", "0.5s", "--json").json
    assert document["state"] == "diverted"
    assert [each["unread"] for each in document["sides"]] == [0, 20]

    refused = headrace("backlog", "join", *asked)
    assert refused.code == 1
    assert "20 records" in refused.err
    assert len(refused.err.splitlines()) == 1
    move(bootstrap, f"{group}.backlog", topic, 31)
    joined = headrace("backlog", "join", *asked)
    assert joined.code == 0, joined.err
    assert "1 records past the cut were read by both groups" in joined.out
    assert "joined" in headrace("backlog", "status", group).out


def test_a_divert_is_undone_and_repeats_are_asked_for(headrace: Headrace, bootstrap: str, name: str) -> None:
    topic, group = prepare(bootstrap, name)
    asked = (group, "--topic", topic)
    assert headrace("backlog", "divert", *asked, "--copy", "--json").json["way"] == "copy"
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, "new")
    move(bootstrap, group, topic, 31)
    refused = headrace("backlog", "undo", *asked)
    assert refused.code == 1
    assert "--allow-repeats" in refused.err
    assert "Undone" in headrace("backlog", "undo", *asked, "--allow-repeats").out
    with Admin(bootstrap) as admin:
        assert admin.group_offsets(group) == {TopicPartition(topic, 0): 10}


def test_a_divert_to_a_fresh_topic_says_who_reads_what(headrace: Headrace, bootstrap: str, name: str) -> None:
    topic, group = prepare(bootstrap, name)
    asked = (group, "--topic", topic)
    done = headrace("backlog", "divert", *asked, "--fresh")
    assert done.code == 0, done.err
    assert f"write to {topic}.fresh from now on" in done.out
    move(bootstrap, group, topic, 30)
    joined = headrace("backlog", "join", *asked, "--quiet", "0.2s")
    assert joined.code == 0, joined.err
    assert f"producers write to {topic} again" in joined.out


def test_what_cannot_be_is_said_in_one_sentence(headrace: Headrace, bootstrap: str, name: str) -> None:
    topic, group = prepare(bootstrap, name)
    for arguments, code, said in (
        (("divert", group, "--topic", "no-such-topic"), 1, "There is no topic 'no-such-topic'."),
        (("divert", "no-such-group", "--topic", topic), 1, "has committed nothing"),
        (("divert", "", "--topic", topic), 1, "The group id must not be empty."),
        (("divert", group, "--topic", ""), 1, "The name of a topic must not be empty."),
        (("divert", group, "--topic", topic, "--copy", "--fresh"), 2, "not both"),
        (("divert", group, "--topic", topic, "--other-groups-follow"), 2, "belongs to --fresh"),
        (("status", group), 1, "There is no divert of group"),
    ):
        ran = headrace("backlog", *arguments)
        assert (ran.code, len(ran.err.splitlines())) == (code, 1), ran.err
        assert said in ran.err

"""kafka-share-groups.sh and kafka-console-share-consumer.sh; and what `headrace groups` and lag say of a share group."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def group(headrace, name):
    """A share group that has read two of five records and left."""
    headrace("kafka", "topics", "--create", "--topic", name, "--partitions", 1)
    earliest = "share.auto.offset.reset=earliest"
    group = f"{name}-workers"
    headrace(
        *("kafka", "configs", "--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", earliest),
    )
    headrace("produce", name, stdin="a\nb\nc\nd\ne\n")
    ran = headrace(
        *("kafka", "console-share-consumer", "--topic", name, "--group", group),
        *("--max-messages", 2, "--timeout-ms", 30_000),
    )
    assert ran.out == "a\nb\n"
    return group


def rows(ran):
    return [line.split() for line in ran.lines if line]


def test_a_share_group_is_described_moved_and_deleted(headrace, name, group):
    def tool(*arguments):
        return headrace("kafka", "share-groups", *arguments)

    assert group in tool("--list").lines
    assert [group, "Empty"] in rows(tool("--list", "--state"))
    assert rows(tool("--describe", "--group", group)) == [
        ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"],
        [group, name, "0", "2", "3"],
    ]
    header, state = rows(tool("--describe", "--group", group, "--state"))
    assert header == ["GROUP", "COORDINATOR", "(ID)", "STATE", "#MEMBERS"]
    assert state[-2:] == ["Empty", "0"]
    moved = tool("--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--execute")
    assert rows(moved)[-1] == [group, name, "0", "5"]
    assert rows(tool("--describe", "--group", group))[-1] == [group, name, "0", "5", "0"]
    assert rows(tool("--delete-offsets", "--group", group, "--topic", name))[-1] == [name, "Successful"]
    assert tool("--delete", "--group", group).code == 0
    assert group not in tool("--list").lines


def test_headrace_groups_and_lag_know_share_groups(headrace, name, group):
    listed = json.loads(headrace("groups", "list", "--type", "share", "--json").out)
    assert {"group": group, "type": "Share", "state": "Empty"} in listed
    (described,) = json.loads(headrace("groups", "describe", group, "--json").out)
    assert (described["type"], described["lag"]) == ("Share", 3)
    assert described["partitions"][0]["committed"] == 2
    ran = headrace("groups", "reset-offsets", group, "--topic", name, "--shift-by", -1, "--execute")
    assert rows(ran)[-1] == [name, "0", "2", "1"]
    (described,) = json.loads(headrace("groups", "describe", group, "--json").out)
    assert described["lag"] == 4
    assert headrace("groups", "delete", group).out == f"Deleted group {group}.\n"


def test_released_records_stay_and_misuse_is_a_sentence(headrace, name, group):
    ran = headrace(
        *("kafka", "console-share-consumer", "--topic", name, "--group", group, "--release"),
        *("--max-messages", 1, "--timeout-ms", 30_000),
    )
    assert ran.out == "c\n"
    assert rows(headrace("kafka", "share-groups", "--describe", "--group", group))[-1][-1] == "3"
    both = headrace("kafka", "console-share-consumer", "--topic", name, "--reject", "--release")
    assert both.code == 1
    assert "At most one of --reject and --release" in both.err
    nobody = headrace("kafka", "share-groups", "--describe", "--group", "nobody")
    assert "Group nobody not found." in nobody.out


def test_a_topic_that_is_not_there_is_named_before_the_wait(headrace, name, group):
    ran = headrace(
        *("kafka", "console-share-consumer", "--topic", f"{name}x", "--group", group, "--timeout-ms", 100)
    )
    assert (ran.code, ran.out) == (0, "")
    assert f"There is no topic '{name}x'. Did you mean '{name}'? Waiting for it.\n" in ran.err


def test_who_joins_a_share_group_as_a_consumer_hears_what_it_is(headrace, name, group):
    ran = headrace("consume", name, "--group", group, "--max", 1)
    assert ran.code == 1
    assert f"'headrace groups describe {group}' shows what it is" in ran.err


def test_a_cluster_on_an_older_level_says_how_to_switch_share_groups_on(headrace, name, group):
    remedy = "'headrace features set share.version=2' switches them on.\n"
    headrace("features", "set", "share.version=0")
    try:
        read = headrace("kafka", "console-share-consumer", "--topic", name, "--group", group)
        assert read.code == 1
        assert read.err.endswith(remedy)
        described = headrace("groups", "describe", group)
        assert described.code == 1
        assert described.err.endswith(remedy)
    finally:
        headrace("features", "set", "share.version=2")

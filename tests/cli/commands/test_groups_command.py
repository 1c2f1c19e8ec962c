from __future__ import annotations

import json
import time

import pytest


@pytest.fixture
def group(headrace, topic, name):
    """A group without members that has read two of five records."""
    headrace("produce", topic, stdin="a\nb\nc\nd\ne\n")
    headrace("consume", topic, "--group", name, "--from-beginning", "--max", 2)
    return name


def offsets(headrace, group):
    (found,) = headrace("groups", "describe", group, "--json").json
    return {(p["topic"], p["partition"]): p["committed"] for p in found["partitions"]}


def test_groups_are_listed_with_their_state(headrace, group):
    assert {"group": group, "type": "Classic", "state": "Empty"} in headrace("groups", "list", "--json").json
    assert group not in headrace("groups", "list", "--state", "stable").out
    assert group in headrace("groups", "list", "--state", "EMPTY,stable", "--type", "classic").out


def test_lag_is_told_in_records_and_in_seconds(headrace, group, topic):
    (found,) = headrace("groups", "describe", group, "--json").json
    (partition,) = found["partitions"]
    assert (found["state"], found["members"], found["lag"]) == ("Empty", 0, 3)
    assert (partition["topic"], partition["committed"], partition["end"], partition["lag"]) == (
        topic,
        2,
        5,
        3,
    )
    assert 0 < partition["lag_seconds"] < 600


def test_a_group_that_has_read_everything_is_no_second_behind(headrace, group, topic):
    headrace("consume", topic, "--group", group, "--max", 3)
    (found,) = headrace("groups", "describe", group, "--json").json
    assert (found["lag"], found["lag_seconds"]) == (0, 0)


def test_the_description_is_readable(headrace, group, topic):
    head, header, row = headrace("groups", "describe", group).lines
    assert head.startswith(f"Group {group}: Empty, 0 members, coordinator 1, lag 3 records, ")
    assert header.split() == [
        "TOPIC",
        "PARTITION",
        "COMMITTED",
        "END",
        "LAG",
        "BEHIND",
        "MEMBER",
        "HOST",
        "CLIENT",
    ]
    assert row.split()[:5] == [topic, "0", "2", "5", "3"]


def test_members_are_shown_with_host_and_partitions(headrace, start, topic, name):
    headrace("produce", topic, stdin="a\n")
    reader = start("consume", topic, "--group", name, "--from-beginning", "-P", "client.id=reader")
    assert reader.stdout.readline() == "a\n"
    (found,) = headrace("groups", "members", name, "--json").json
    (member,) = found["members"]
    assert found["state"] == "Stable"
    assert (member["client_id"], member["host"]) == ("reader", "/127.0.0.1")
    assert member["assignment"] == [{"topic": topic, "partition": 0}]
    assert f"{topic}:0" in headrace("groups", "members", name).out
    refused = headrace("groups", "reset-offsets", name, "--topic", topic, "--to-earliest", "--execute")
    assert refused.code == 1
    assert "stop its members first" in refused.err
    assert "still has members" in headrace("groups", "delete", name).err


def test_members_of_the_newer_protocol_have_epochs(headrace, start, topic, name):
    headrace("produce", topic, stdin="a\n")
    reader = start("consume", topic, "--group", name, "--from-beginning", "-P", "group.protocol=consumer")
    assert reader.stdout.readline() == "a\n"
    (found,) = headrace("groups", "members", name, "--json").json
    assert found["members"][0]["epoch"] >= 1
    assert {"group": name, "type": "Consumer", "state": "Stable"} in headrace("groups", "list", "--json").json


def test_a_reset_is_only_shown_until_it_is_executed(headrace, group, topic):
    shown = headrace("groups", "reset-offsets", group, "--topic", topic, "--to-earliest")
    assert shown.out.split() == ["TOPIC", "PARTITION", "FROM", "TO", topic, "0", "2", "0"]
    assert "add --execute" in shown.err
    assert offsets(headrace, group) == {(topic, 0): 2}
    headrace("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
    assert offsets(headrace, group) == {(topic, 0): 0}
    assert headrace("consume", topic, "--group", group, "--max", 1).lines == ["a"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--to-latest",), 5),
        (("--to-current",), 2),
        (("--to-offset", 4), 4),
        (("--to-offset", 400), 5),
        (("--shift-by", 1), 3),
        (("--shift-by", -2), 0),
        (("--to-datetime", "2001-01-01T00:00:00"), 0),
        (("--by-duration", "P1D"), 0),
    ],
)
def test_every_way_to_reset(headrace, group, topic, arguments, expected):
    ran = headrace("groups", "reset-offsets", group, "--all-topics", *arguments, "--json")
    assert ran.json == {
        "group": group,
        "executed": False,
        "offsets": [{"topic": topic, "partition": 0, "from": 2, "to": expected}],
    }


def test_a_time_after_every_record_falls_back_to_the_end_and_says_so(headrace, group):
    ran = headrace("groups", "reset-offsets", group, "--all-topics", "--to-datetime", "2100-01-01", "--json")
    assert ran.json["offsets"][0]["to"] == 5
    assert "Falling back to latest known offset" in ran.err


def test_offsets_are_exported_and_come_back_from_the_file(headrace, group, topic, tmp_path):
    plan = headrace("groups", "reset-offsets", group, "--all-topics", "--to-current", "--export").out
    assert plan == f"{topic},0,2\n"
    (tmp_path / "plan.csv").write_text(plan)
    headrace("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    headrace("groups", "reset-offsets", group, "--from-file", tmp_path / "plan.csv", "--execute")
    assert offsets(headrace, group) == {(topic, 0): 2}


def test_a_group_that_never_was_can_be_given_offsets(headrace, topic, name):
    headrace("produce", topic, stdin="a\nb\n")
    headrace("groups", "reset-offsets", name, "--topic", f"{topic}:0", "--to-offset", 1, "--execute")
    assert headrace("consume", topic, "--group", name, "--max", 1).lines == ["b"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--all-topics",), "Say where to"),
        (("--all-topics", "--to-latest", "--to-earliest"), "Say where to"),
        (("--to-latest",), "Say which partitions"),
        (("--all-topics", "--by-duration", "soon"), "is no duration"),
        (("--topic", "x:one", "--to-latest"), "There is no topic 'x'"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(headrace, group, arguments, sentence):
    ran = headrace("groups", "reset-offsets", group, *arguments)
    assert ran.code in (1, 2)
    assert sentence in ran.err


def test_a_group_is_deleted_with_its_offsets(headrace, group):
    assert headrace("groups", "delete", group).out == f"Deleted group {group}.\n"
    assert group not in headrace("groups", "list").out


def test_an_unknown_group_is_named_with_the_nearest(headrace, group):
    for command in ("describe", "members", "delete"):
        ran = headrace("groups", command, group + "x")
        assert ran.code == 1
        assert ran.err == f"headrace: There is no group '{group}x'. Did you mean '{group}'?\n"


def test_watching_shows_the_lag_shrink(headrace, start, group, topic):
    watcher = start("groups", "describe", group, "--watch", "--interval", 0.2, "--json")
    assert json.loads(watcher.stdout.readline())["lag"] == 3
    headrace("consume", topic, "--group", group, "--max", 3)
    deadline = time.monotonic() + 30
    while json.loads(watcher.stdout.readline())["lag"]:
        assert time.monotonic() < deadline


def test_a_reset_of_a_group_that_is_not_there_says_so(headrace, group, topic):
    misspelt = f"{group}x"
    ran = headrace("groups", "reset-offsets", misspelt, "--topic", topic, "--to-earliest")
    assert f"There is no group '{misspelt}'. Did you mean '{group}'?" in ran.err
    ran = headrace("groups", "reset-offsets", misspelt, "--all-topics", "--to-earliest")
    assert ran.code == 1
    assert ran.err == f"headrace: There is no group '{misspelt}'. Did you mean '{group}'?\n"


def test_a_group_that_has_committed_nothing_has_no_lag_to_tell(headrace, start, topic, name):
    headrace("produce", topic, stdin="a\n")
    reader = start(
        "consume", topic, "--group", name, "--from-beginning", "--property", "enable.auto.commit=false"
    )
    assert reader.stdout.readline() == "a\n"
    (found,) = headrace("groups", "describe", name, "--json").json
    assert (found["lag"], found["partitions"][0]["lag"]) == (None, None)
    assert "nothing committed" in headrace("groups", "describe", name).lines[0]


def test_a_plan_of_binary_data_is_no_plan(headrace, name, tmp_path):
    (tmp_path / "plan.csv").write_bytes(b"\xff\xfe\x00")
    ran = headrace("groups", "reset-offsets", name, "--from-file", tmp_path / "plan.csv")
    assert ran.code == 1
    assert ran.err.endswith("plan.csv is no CSV file: it holds binary data.\n")

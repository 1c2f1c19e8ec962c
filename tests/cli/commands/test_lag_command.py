"""`headrace lag`: watch, check, record, history, against a real broker."""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka import ShareConsumer

from headrace.cli.view.lag import sparkline
from tests.server.share.group_settings import configure
from tests.waiting import until


@pytest.fixture
def group(headrace, topic, name):
    """Has read two of five records and left."""
    headrace("produce", topic, stdin="a\nb\nc\nd\ne\n")
    headrace("consume", topic, "--group", name, "--from-beginning", "--max", 2)
    return name


def commit(headrace, group, topic, offset):
    ran = headrace("groups", "reset-offsets", group, "--topic", topic, "--to-offset", offset, "--execute")
    assert ran.code == 0, ran.err


def test_a_group_that_left_records_unread_fails_the_check(headrace, group):
    ran = headrace("lag", "check", group, "--json")
    assert ran.code == 1
    [found] = ran.json
    assert (found["state"], found["records"], found["problems"]) == ("gone", 3, ["is gone"])
    ran = headrace("lag", "check", group)
    assert ran.code == 1
    assert "is gone" in ran.out


def test_what_fails_is_the_callers_choice(headrace, group):
    assert headrace("lag", "check", group, "--fail-on", "stalled").code == 0
    ran = headrace("lag", "check", group, "--fail-on", "none", "--max-records", 2)
    assert ran.code == 1
    assert "3 records unread, more than 2" in ran.out
    assert headrace("lag", "check", group, "--fail-on", "none", "--max-seconds", "1h").code == 0


def test_retention_that_comes_near_fails_the_check(headrace, group, topic):
    assert headrace("configs", "alter", "topic", topic, "--set", "retention.ms=1800000").code == 0
    ran = headrace("lag", "check", group, "--fail-on", "none")
    assert ran.code == 1
    assert "retention may delete unread records in" in ran.out
    assert headrace("lag", "check", group, "--fail-on", "none", "--min-until-loss", "5m").code == 0


def test_a_group_that_has_read_everything_passes_at_once(headrace, group, topic):
    commit(headrace, group, topic, 5)
    ran = headrace("lag", "check", group, "--json", "--window", "1h")
    assert (ran.code, ran.json[0]["state"]) == (0, "ok")


def test_a_simple_group_that_commits_nothing_is_stalled(headrace, topic, name):
    headrace("produce", topic, stdin="a\nb\n")
    commit(headrace, name, topic, 1)
    ran = headrace("lag", "check", name, "--window", "1s", "--json")
    assert ran.code == 1
    assert (ran.json[0]["kind"], ran.json[0]["state"]) == ("simple", "stalled")


def test_watching_shows_each_group_with_its_state(headrace, start, group, topic):
    watcher = start("lag", "watch", group, "--interval", 0.2, "--json")
    assert json.loads(watcher.stdout.readline())["state"] == "gone"
    commit(headrace, group, topic, 5)
    deadline = time.monotonic() + 60
    while json.loads(watcher.stdout.readline())["state"] != "ok":
        assert time.monotonic() < deadline
    table = start("lag", "watch", group, "--interval", 0.2)
    assert table.stdout.readline().split()[:3] == ["GROUP", "STATE", "LAG"]
    assert table.stdout.readline().split()[:3] == [group, "ok", "0"]


def test_history_shows_what_was_recorded(headrace, start, group):
    assert "'headrace lag record' writes it" in headrace("lag", "history", group).err
    recorder = start("lag", "record", "--interval", "1s")
    assert "every 1s" in recorder.stderr.readline()
    until(lambda: len(headrace("lag", "history", group, "--json").json) >= 2, "two entries")
    first = headrace("lag", "history", group, "--json").json[0]
    assert (first["group"], first["records"], first["state"]) == (group, 3, "gone")
    assert headrace("lag", "history", group).lines[0].startswith(f"{group}: ")
    assert headrace("lag", "history", group, "--last", "1h").code == 0


def test_group_descriptions_carry_state_and_trend(headrace, start, group, topic):
    watcher = start("groups", "describe", group, "--watch", "--interval", 0.2, "--json")
    found = json.loads(watcher.stdout.readline())
    assert (found["lag_state"], found["partitions"][0]["lag_state"]) == ("gone", "gone")
    commit(headrace, group, topic, 5)
    deadline = time.monotonic() + 60
    while (found := json.loads(watcher.stdout.readline()))["lag"]:
        assert time.monotonic() < deadline
    assert found["lag_state"] == "ok"
    assert found["trend"] < 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "nowhere"], "There is no group 'nowhere'"),
        (["check", "--fail-on", "stuck"], "Valid states are: ok, unknown, draining"),
        (["check", "--window", "soon"], "'soon' is no duration"),
        (["watch", "--window", "0s"], "--window takes a duration above 0"),
        (["record", "--interval", "0.1s"], "at least 1s"),
    ],
)
def test_bad_input_gets_one_sentence(headrace, arguments, sentence):
    ran = headrace("lag", *arguments)
    assert ran.code in (1, 2)
    assert sentence in ran.err


def test_a_sparkline_rises_with_its_values():
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([0, 50, 100]) == "▁▅█"


def test_share_groups_are_listed_and_found_by_name(headrace, broker, topic, name):
    configure(broker.bootstrap, name, {"share.auto.offset.reset": "earliest"})
    headrace("produce", topic, stdin="a\n")
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": name, "log_level": 0}
    consumer = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.2), "the record")
    [lag] = headrace("lag", "check", name, "--window", "1s", "--json").json
    assert (lag["kind"], lag["records"]) == ("share", 1)
    consumer.close()
    assert name in headrace("lag", "check", "--window", "1s").out
    ran = headrace("lag", "check", name[:-1])
    assert ran.code == 1
    assert f"id you mean '{name}'?" in ran.err

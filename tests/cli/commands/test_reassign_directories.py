"""Replicas move between the directories of a broker: `headrace reassign` and kafka-reassign-partitions.sh with log_dirs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import pytest

from headrace.testing.broker import BrokerThread
from tests.waiting import until


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    data = tmp_path_factory.mktemp("broker")
    running = BrokerThread(data, {"log.dirs": f"{data}/one,{data}/two"}).start()
    yield running
    running.stop()


def sides(broker: BrokerThread, topic: str) -> tuple[str, str]:
    """The directory that has the topic's partition, and the other one."""
    one, two = f"{broker.data}/one", f"{broker.data}/two"
    return (one, two) if os.path.isdir(f"{one}/{topic}-0") else (two, one)


def plan(tmp_path, topic, *log_dirs):
    path = tmp_path / "plan.json"
    entry = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": list(log_dirs)}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return path


def test_a_plan_names_directories(headrace, broker, topic, tmp_path):
    here, there = sides(broker, topic)
    path = plan(tmp_path, topic, there)
    shown = headrace("reassign", "execute", path)
    assert re.search(rf"{topic} +0 +1 +{here} +{there}", shown.out)
    assert "Nothing was changed" in shown.err
    assert headrace("reassign", "execute", path, "--execute", "--throttle", 1_000_000, "--wait").code == 0
    assert sides(broker, topic) == (there, here)
    assert "No partition is on the move." in headrace("reassign", "status").err
    settings = headrace("configs", "describe", "broker", 1, "--json").json
    assert "replica.alter.log.dirs.io.max.bytes.per.second" not in json.dumps(settings)


def test_a_move_is_shown_while_it_lasts(headrace, broker, topic, tmp_path):
    here, there = sides(broker, topic)
    headrace("configs", "alter", "broker", "--set", "replica.alter.log.dirs.io.max.bytes.per.second=0")
    headrace("produce", topic, stdin="one\ntwo\n")
    headrace("reassign", "execute", plan(tmp_path, topic, there), "--execute")
    (shown,) = headrace("reassign", "status", "--json").json
    assert (shown["topic"], shown["partition"], shown["broker"], shown["directory"]) == (topic, 0, 1, there)
    assert shown["copied"] == 0 < shown["total"]
    assert "TO DIRECTORY" in headrace("reassign", "status").out
    headrace("configs", "alter", "broker", "--delete", "replica.alter.log.dirs.io.max.bytes.per.second")
    until(lambda: sides(broker, topic) == (there, here))


def test_kafkas_tool_speaks_as_the_original(headrace, broker, topic, tmp_path):
    here, there = sides(broker, topic)
    tool = ("kafka", "reassign-partitions", "--reassignment-json-file", plan(tmp_path, topic, there))
    verified = headrace(*tool, "--verify", "--preserve-throttles")
    assert (
        f"Partition {topic}-0 on broker 1 is not being moved from log dir {here} to {there}." in verified.out
    )
    ran = headrace(*tool, "--execute", "--replica-alter-log-dirs-throttle", 1_000_000)
    assert f'"replicas":[1],"log_dirs":["{here}"]' in ran.out
    assert "The replica-alter-dir throttle limit was set to 1000000 B/s\n" in ran.out
    assert (
        f"Successfully started moving log directory to {there} for replica {topic}-0 with broker 1\n"
        in ran.out
    )

    def completed():
        done = f"Reassignment of replica {topic}-0-1 completed successfully."
        return done in headrace(*tool, "--verify").out

    until(completed)


def test_a_directory_that_is_not_there_is_refused(headrace, topic, tmp_path):
    ran = headrace("reassign", "execute", plan(tmp_path, topic, "/nowhere"), "--execute")
    assert ran.code == 1
    assert "cannot go to its directory: Log dir not found" in ran.err
    assert "needs a directory" in headrace("reassign", "execute", plan(tmp_path, topic, "a", "b")).err

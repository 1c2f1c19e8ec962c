"""Kafka's newer tools, and those that scripts start brokers with. Their output is that of Apache Kafka 4.3's."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.testing.wire import WireClient

ROOT = Path(__file__).parents[3]


def test_numbers_are_produced_and_consumed_verifiably(headrace, topic):
    produced = headrace(
        "kafka",
        "verifiable-producer",
        "--topic",
        topic,
        "--max-messages",
        3,
        "--value-prefix",
        7,
        "--repeating-keys",
        2,
    ).json_lines
    assert [each["name"] for each in produced] == [
        "startup_complete",
        *["producer_send_success"] * 3,
        "shutdown_complete",
        "tool_data",
    ]
    assert {(each["key"], each["value"]) for each in produced[1:4]} == {
        ("0", "7.0"),
        ("1", "7.1"),
        ("0", "7.2"),
    }
    assert (produced[-1]["sent"], produced[-1]["acked"], produced[-1]["target_throughput"]) == (3, 3, -1)
    consumed = headrace(
        "kafka",
        "verifiable-consumer",
        "--topic",
        topic,
        "--group-id",
        f"g-{topic}",
        "--max-messages",
        3,
        "--verbose",
    ).json_lines
    names = [each["name"] for each in consumed]
    assert names[0] == "startup_complete"
    assert names[-1] == "shutdown_complete"
    assert sorted(each["value"] for each in consumed if each["name"] == "record_data") == [
        "7.0",
        "7.1",
        "7.2",
    ]
    (committed,) = [each for each in consumed if each["name"] == "offsets_committed"][-1:]
    assert committed["success"] is True
    listed = headrace("kafka", "groups", "--list").out
    assert re.match(r"GROUP +TYPE +PROTOCOL", listed)
    assert re.search(rf"^g-{topic} +Classic +consumer *$", listed, re.MULTILINE)
    assert f"g-{topic}" not in headrace("kafka", "groups", "--list", "--share").out
    assert f"g-{topic}" in headrace("kafka", "groups", "--list", "--consumer").out


def test_the_cluster_tool_shows_versions(headrace):
    shown = headrace("kafka", "cluster", "api-versions").out
    assert "\tApiVersions(18): 0 to 5 [usable: 5]" in shown
    assert shown == headrace("kafka", "broker-api-versions").out


def test_there_is_nothing_to_format(headrace, tmp_path):
    assert re.fullmatch(r"[\w-]{22}\n", headrace("kafka", "storage", "random-uuid").out)
    settings = tmp_path / "server.properties"
    settings.write_text(f"log.dirs={tmp_path}/data\n")
    ran = headrace("kafka", "storage", "format", "-t", "abc", "-c", settings)
    assert (ran.code, ran.out) == (0, "")
    assert "nothing to format" in ran.err
    assert "has not been used yet" in headrace("kafka", "storage", "info", "-c", settings).out
    assert "kafka-configs.sh" in headrace("kafka", "storage", "format", "-S", "SCRAM-SHA-256=[name=a]").err


def test_a_class_is_answered_with_the_tool_that_has_its_place(headrace):
    ran = headrace("kafka", "run-class", "kafka.tools.GetOffsetShell", "--broker-list", "x")
    assert ran.code == 1
    assert "kafka-get-offsets.sh takes its place" in ran.err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_broker_is_started_and_stopped_as_kafkas_is(headrace, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = tmp_path / "server.properties"
    settings.write_text(f"listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={tmp_path}/other\n")
    command = [
        ROOT / "bin/kafka-server-start.sh",
        "-daemon",
        settings,
        "--override",
        f"log.dirs={tmp_path}/data",
    ]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "LOG_DIR": str(tmp_path / "logs")})
    deadline = time.monotonic() + 60
    while "is ready" not in (said := (tmp_path / "logs/kafkaServer.out").read_text()):
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
    assert (tmp_path / "data/meta.properties").exists()
    with WireClient(f"127.0.0.1:{port}") as client:
        stopped = headrace("kafka", "server-stop", "--bootstrap-server", f"127.0.0.1:{port}")
        assert stopped.code == 0, stopped.err
        pid = int(re.search(r"process (\d+)", stopped.out)[1])
        del client
    try:
        while (tmp_path / "data/.kafka_cleanshutdown").exists() is False:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        raise
    again = headrace("kafka", "server-stop", "--bootstrap-server", f"127.0.0.1:{port}")
    assert again.code == 1
    assert "No kafka server to stop" in again.err
    assert not (tmp_path / "other").exists()

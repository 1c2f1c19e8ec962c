"""`headrace up --brokers N`: one process per broker, and what happens when one of them, or the supervisor, ends."""

import os
import re
import signal
import subprocess
import sys
import urllib.request

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.server.config.broker import BrokerConfig
from headrace.server.restarts import HEALTHY_SECONDS, LONGEST_PAUSE, Restarts
from headrace.server.supervisor import settings_of
from tests.waiting import until


class Supervised:
    def __init__(self, data, brokers, *more):
        command = [sys.executable, "-m", "headrace.cli", "up", "--brokers", str(brokers)]
        command += ["--listen", "127.0.0.1:0", "--data", str(data), *more]
        self.errors = data.with_suffix(".stderr")
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.line = self.process.stdout.readline()
        assert "is ready: brokers" in self.line, self.line + self.errors.read_text()

    @property
    def bootstrap(self):
        return ",".join(re.findall(r"127\.0\.0\.1:\d+", self.line))

    def brokers(self):
        """The brokers' processes, by id."""
        found = {}
        for child in psutil.Process(self.process.pid).children():
            try:
                node = re.search(r"node\.id=(\d+)", " ".join(child.cmdline()))
            except psutil.NoSuchProcess:
                continue  # It ended while we looked.
            if node:
                found[int(node[1])] = child
        return found

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture
def supervised(tmp_path):
    running = Supervised(tmp_path / "data", 3)
    yield running
    running.end()


def admin_of(supervised):
    return AdminClient({"bootstrap.servers": supervised.bootstrap, "log_level": 0})


def test_brokers_make_a_cluster_and_one_that_is_killed_comes_back(supervised, tmp_path):
    admin = admin_of(supervised)
    admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(60)
    producer = Producer({"bootstrap.servers": supervised.bootstrap, "acks": "all", "log_level": 0})
    for number in range(100):
        producer.produce("orders", b"%d" % number)
    assert producer.flush(60) == 0
    assert sorted(path.name for path in (tmp_path / "data").glob("broker-*")) == [
        "broker-1",
        "broker-2",
        "broker-3",
    ]

    victim = supervised.brokers()[2]
    os.kill(victim.pid, signal.SIGKILL)
    until(lambda: (back := supervised.brokers().get(2)) is not None and back.pid != victim.pid)
    until(
        lambda: all(
            set(partition.isrs) == {1, 2, 3}
            for partition in admin.list_topics("orders", 60).topics["orders"].partitions.values()
        )
    )
    assert "broker 2 ended (signal SIGKILL)" in supervised.errors.read_text()

    brokers = supervised.brokers()
    supervised.process.send_signal(signal.SIGTERM)
    assert supervised.process.wait(60) == 0
    assert not any(broker.is_running() for broker in brokers.values())


def test_new_topics_survive_a_broker(supervised):
    admin = admin_of(supervised)
    admin.create_topics([NewTopic("orders", 2)])["orders"].result(60)
    found = admin.list_topics("orders", 60).topics["orders"].partitions.values()
    assert [sorted(partition.replicas) for partition in found] == [[1, 2, 3]] * 2
    assert "; new topics have 3 replicas" in supervised.line


def test_the_replicas_of_new_topics_are_the_users_to_choose(tmp_path):
    chosen = BrokerConfig.load({"default.replication.factor": "1", "log.dirs": str(tmp_path)}, {})
    assert "default.replication.factor" not in settings_of(1, 3, chosen, tmp_path / "store.sock")


def test_a_broker_that_is_killed_again_and_again_is_back_at_once(supervised):
    for times in (1, 2, 3):
        victim = supervised.brokers()[2]
        os.kill(victim.pid, signal.SIGKILL)
        until(lambda: supervised.errors.read_text().count("broker 2 ended (signal SIGKILL)") == times)  # noqa: B023
        until(lambda: 2 in supervised.brokers() and supervised.brokers()[2].pid != victim.pid)  # noqa: B023
    said = [line for line in supervised.errors.read_text().splitlines() if "broker 2 ended" in line]
    assert [line.rpartition("; ")[2] for line in said] == ["starting it again at once"] * 3


def test_a_broker_that_keeps_ending_early_is_started_with_pauses_until_it_serves_for_a_while():
    restarts = Restarts()
    pauses = [restarts.pause_after(served=1.0) for _ in range(9)]
    assert pauses == [0, 0, 0, 1, 2, 4, 8, LONGEST_PAUSE, LONGEST_PAUSE]
    assert restarts.pause_after(served=HEALTHY_SECONDS) == 0
    assert [restarts.pause_after(served=0.0) for _ in range(4)] == [0, 0, 0, 1]


def test_brokers_end_with_a_supervisor_that_is_killed(supervised):
    brokers = supervised.brokers()
    assert sorted(brokers) == [1, 2, 3]
    supervised.process.kill()
    _, alive = psutil.wait_procs(brokers.values(), 60)
    assert alive == []


def test_brokers_that_cannot_start_are_not_tried_for_ever(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "broker-2").write_text("in the way")
    command = [sys.executable, "-m", "headrace.cli", "up", "--brokers", "2", "--data", str(tmp_path / "data")]
    ended = subprocess.run([*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "Broker 2 did not start" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_two_supervisors_cannot_share_their_data(supervised, tmp_path):
    command = [sys.executable, "-m", "headrace.cli", "up", "--brokers", "2", "--data", str(tmp_path / "data")]
    ended = subprocess.run([*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "in use by another process" in ended.stderr


def test_several_brokers_do_not_start_over_the_data_of_a_lone_one(make_broker):
    lone = make_broker()
    lone.stop()
    command = [sys.executable, "-m", "headrace.cli", "up", "--brokers", "2", "--data", str(lone.data)]
    ended = subprocess.run([*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert f"move all but cluster.db into {lone.data}/broker-1" in ended.stderr
    assert not (lone.data / "broker-1").exists()


def test_each_broker_has_ports_and_data_of_its_own(tmp_path):
    config = BrokerConfig.load(
        {
            "listeners": "PLAINTEXT://:9092",
            "advertised.listeners": "PLAINTEXT://example.org:19092",
            "log.dirs": "/a,/b",
            "offsets.topic.replication.factor": "3",
        }
    )
    own = settings_of(2, 2, config, tmp_path / "s")
    assert own["node.id"] == "2"
    assert own["listeners"] == "PLAINTEXT://:9093"
    assert own["advertised.listeners"] == "PLAINTEXT://example.org:19093"
    assert own["log.dirs"] == "/a/broker-2,/b/broker-2"
    # Given settings stay; the others are adapted to two brokers.
    assert "offsets.topic.replication.factor" not in own
    assert (own["transaction.state.log.replication.factor"], own["transaction.state.log.min.isr"]) == (
        "2",
        "2",
    )


def test_each_broker_of_a_machine_has_a_metrics_port_of_its_own(tmp_path):
    config = BrokerConfig.load({}, {"headrace.metrics.listener": "127.0.0.1:9464", "log.dirs": str(tmp_path)})
    found = [
        settings_of(each, 3, config, tmp_path / "store")["headrace.metrics.listener"] for each in (1, 2, 3)
    ]
    assert found == ["127.0.0.1:9464", "127.0.0.1:9465", "127.0.0.1:9466"]


def test_the_line_that_says_brokers_are_ready_names_the_metrics_of_each(tmp_path):
    running = Supervised(tmp_path / "data", 2, "--metrics", "127.0.0.1:0")
    try:
        found = re.findall(r"http://127\.0\.0\.1:\d+/metrics", running.line)
        assert len(found) == len(set(found)) == 2, running.line
        for each in found:
            with urllib.request.urlopen(each, timeout=60) as answer:
                assert b"kafka_server_kafkaserver_brokerstate 3" in answer.read()
    finally:
        running.end()

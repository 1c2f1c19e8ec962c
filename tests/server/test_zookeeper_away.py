"""A broker that starts while ZooKeeper is away waits for it, says so, and can be stopped meanwhile."""

import signal
import subprocess
import sys
import time

import pytest

from headrace.testing.zookeeper import ZooKeeperServer


class Starting:
    """A broker on its way up: its first line of output may be long in coming."""

    def __init__(self, directory, zookeeper, *settings):
        command = [sys.executable, "-m", "headrace.cli", "up", "--listen", "127.0.0.1:0", "--id", "1"]
        command += ["--data", str(directory / "data"), "--zookeeper", zookeeper]
        for setting in settings:
            command += ["--set", setting]
        self._errors = directory / "stderr"
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)

    @property
    def said(self):
        return self._errors.read_text()

    def until_it_says(self, text):
        deadline = time.monotonic() + 60
        while text not in self.said:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)

    def ended_after(self, number):
        self.process.send_signal(number)
        return self.process.wait(60)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture
def starting(tmp_path):
    brokers = []

    def start(zookeeper, *settings):
        brokers.append(Starting(tmp_path, zookeeper, *settings))
        return brokers[-1]

    yield start
    for broker in brokers:
        broker.end()


def test_it_waits_until_zookeeper_is_there(starting, tmp_path):
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        zookeeper.kill()
        # It must not give up after a session timeout.
        broker = starting(f"{zookeeper.connect_string}/headrace", "zookeeper.session.timeout.ms=1000")
        broker.until_it_says(f"ZooKeeper at {zookeeper.connect_string}/headrace does not answer yet")
        assert "refused" in broker.said
        zookeeper.start()
        assert "is ready: broker 1" in broker.process.stdout.readline()
        assert broker.said.count("does not answer") == 1
        assert broker.ended_after(signal.SIGTERM) == 0


def test_a_name_that_nobody_knows_is_named_and_waited_for(starting):
    broker = starting("zookeeper.invalid:2181")
    broker.until_it_says("does not answer yet (Cannot resolve zookeeper.invalid:")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told_to_while_it_waits(starting, number):
    broker = starting("127.0.0.1:1")
    broker.until_it_says("waiting for it")
    assert broker.ended_after(number) == 0
    assert "stopped before it served" in broker.said
    assert "Traceback" not in broker.said


def test_with_a_limit_it_gives_up_in_one_sentence(starting):
    broker = starting("127.0.0.1:1", "zookeeper.connection.timeout.ms=300")
    assert broker.process.wait(60) == 1
    assert broker.said.splitlines()[-1].startswith("headrace: ZooKeeper at 127.0.0.1:1 does not answer (")
    assert "Traceback" not in broker.said


def test_an_address_that_is_none_is_one_sentence(starting):
    broker = starting("127.0.0.1:port")
    assert broker.process.wait(60) == 1
    assert "which is not HOST:PORT" in broker.said
    assert "Traceback" not in broker.said

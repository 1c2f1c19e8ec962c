"""Several instances: one writes, the others pass changes on; whatever is killed and whenever, an id is never given twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.link.settings import KafkaSettings
from headrace.registry import records
from headrace.registry.content import Content
from headrace.registry.election import Instance, choose
from headrace.registry.topic import Fenced, TopicError, TopicReader, TopicWriter, ensure
from headrace.testing.broker import BrokerThread
from headrace.testing.registry import RegistryThread
from tests.registry.conftest import Rest, record
from tests.waiting import until


@pytest.fixture
def alone(tmp_path: Any) -> Iterator[BrokerThread]:
    """A broker of the test's own."""
    with BrokerThread(tmp_path / "broker", {"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def settings_of(broker: BrokerThread) -> KafkaSettings:
    return KafkaSettings.of({"bootstrap.servers": broker.bootstrap}, "the test")


class Process:
    """`headrace registry` as a process, to be killed."""

    def __init__(self, broker: BrokerThread, listen: str = "127.0.0.1:0") -> None:
        command = [sys.executable, "-m", "headrace.cli", "registry", "--bootstrap-server", broker.bootstrap]
        command += ["--listen", listen, "--set", "headrace.registry.session.timeout.ms=6000"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "is ready: schema registry on http://" in line, line
        self.url = line.split("schema registry on ")[1].split(",")[0]

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(20)


def topic_of(broker: BrokerThread) -> list[tuple[bytes | None, bytes | None]]:
    reader = TopicReader(settings_of(broker), records.TOPIC)
    found = []
    while not reader.caught_up:
        found += [(each.key, each.value) for each in reader.read()]
    reader.close()
    return found


def ids_in(broker: BrokerThread) -> dict[int, set[str]]:
    """The texts that each id ever had in the topic."""
    found: dict[int, set[str]] = {}
    for key, value in topic_of(broker):
        if key is not None and value is not None and records.read_key(key).keytype == records.SCHEMA:
            schema = records.read_schema(value)
            found.setdefault(schema.id, set()).add(schema.schema)
    return found


def test_a_follower_passes_changes_on_and_knows_them_at_once(alone: BrokerThread) -> None:
    with RegistryThread(alone.bootstrap) as one, RegistryThread(alone.bootstrap) as other:
        for number, url in enumerate((one.url, other.url)):
            rest = Rest(url)
            registered = _soon(rest, f"s{number}", number)
            assert rest("GET", f"/schemas/ids/{registered}")[0] == 200
        assert Rest(other.url)("PUT", "/config/s0", {"compatibility": "NONE"}) == (
            200,
            {"compatibility": "NONE"},
        )
        assert Rest(other.url)("GET", "/config/s0")[1] == {"compatibilityLevel": "NONE"}
        refused = Rest(other.url)("POST", "/subjects/s0/versions", {"schema": "{}"})
        assert refused[1]["error_code"] == 42201
        assert Rest(other.url)("DELETE", "/subjects/s0") == (200, [1])
        assert Rest(other.url)("DELETE", "/subjects/s0")[1]["error_code"] == 40404


def _soon(rest: Rest, subject: str, number: int) -> int:
    """The id of a schema, once there is a writer."""
    body = {"schema": json.dumps(record(f"R{number}", "a"))}
    found: list[int] = []

    def attempt() -> bool:
        status, answer = rest("POST", f"/subjects/{subject}/versions", body)
        if status == 200:
            found.append(answer["id"])
        return status == 200

    until(attempt, "a writer")
    return found[0]


def test_an_instance_that_may_not_write_answers_50003_while_nobody_does(alone: BrokerThread) -> None:
    with RegistryThread(alone.bootstrap, {"leader.eligibility": "false"}) as reader:
        rest = Rest(reader.url)
        status, found = rest("POST", "/subjects/a/versions", {"schema": '"int"'})
        assert (status, found["error_code"]) == (500, 50003)
        assert rest("PUT", "/config", {"compatibility": "NONE"})[1]["error_code"] == 50003
        assert rest("GET", "/subjects") == (200, [])
        with RegistryThread(alone.bootstrap) as writer:
            assert _soon(rest, "a", 1) == 1
            assert Rest(writer.url)("GET", "/subjects") == (200, ["a"])


def test_a_request_that_was_passed_on_is_not_passed_on_again(alone: BrokerThread) -> None:
    with (
        RegistryThread(alone.bootstrap, {"leader.eligibility": "false"}) as reader,
        RegistryThread(alone.bootstrap),
    ):
        rest = Rest(reader.url)
        _soon(rest, "a", 1)
        refused = rest("POST", "/subjects/b/versions", {"schema": '"int"'}, **{"X-Forward": "true"})
        assert refused[1]["error_code"] == 50003


def test_a_restart_finds_everything(alone: BrokerThread) -> None:
    with RegistryThread(alone.bootstrap) as registry:
        numbers = [Rest(registry.url).register(f"s{each}", record(f"R{each}", "a")) for each in range(5)]
    with RegistryThread(alone.bootstrap) as registry:
        rest = Rest(registry.url)
        assert rest("GET", "/subjects") == (200, [f"s{each}" for each in range(5)])
        assert rest.register("s9", record("R9", "a")) == max(numbers) + 1


def test_the_writer_is_killed_during_registrations_and_no_id_is_given_twice(alone: BrokerThread) -> None:
    one, other = Process(alone), Process(alone)
    told: dict[int, str] = {}
    stop = threading.Event()

    def register(thread: int) -> None:
        number = 0
        while not stop.is_set():
            name = f"K{thread}x{number}"
            body = {"schema": json.dumps(record(name, "a"))}
            for url in (one.url, other.url):
                try:
                    status, found = Rest(url)("POST", f"/subjects/{name}/versions", body)
                except (OSError, ValueError):
                    continue
                if status == 200:
                    assert told.setdefault(found["id"], name) == name, "an id was given twice"
                    number += 1
                    break

    threads = [threading.Thread(target=register, args=(each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(told) > 100)
    first = min((one, other), key=lambda each: each.url)
    last = other if first is one else one
    first.kill()
    before = len(told)
    until(lambda: len(told) > before + 100)
    stop.set()
    for thread in threads:
        thread.join()
    assert last.stop() == 0
    written = ids_in(alone)
    assert all(len(texts) == 1 for texts in written.values()), "one id, two schemas"
    for number, name in told.items():
        assert f'"{name}"' in next(iter(written[number])), "a reply told of what is not in the topic"


def test_a_writer_that_was_paused_cannot_write_when_another_has_begun(alone: BrokerThread) -> None:
    settings = settings_of(alone)
    ensure(settings, records.TOPIC, 1)
    old, new = (TopicWriter(settings, records.TOPIC, "the-writer") for _ in range(2))
    old.begin()
    value = records.schema_value("a", 1, 1, Content('"int"'))
    old.append([(records.schema_key("a", 1), value)])
    new.begin()
    with pytest.raises(Fenced):
        old.append([(records.schema_key("b", 1), value)])
    new.append([(records.schema_key("c", 1), value)])
    keys = [key for key, _ in topic_of(alone) if key != records.NOOP_KEY]
    assert keys == [records.schema_key("a", 1), records.schema_key("c", 1)]
    old.close()
    new.close()


def test_another_registry_that_takes_an_id_in_between_keeps_it(alone: BrokerThread) -> None:
    with RegistryThread(alone.bootstrap) as registry:
        rest = Rest(registry.url)
        first = rest.register("a", record("A", "a"))
        foreign = TopicWriter(settings_of(alone), records.TOPIC, "a foreign registry")
        foreign.begin()
        value = records.schema_value("theirs", 1, first + 1, Content('"int"'))
        foreign.append([(records.schema_key("theirs", 1), value)])
        foreign.close()
        assert rest.register("b", record("B", "a")) == first + 2
        assert rest("GET", "/subjects/theirs/versions/1")[1]["id"] == first + 1


def test_a_topic_that_would_forget_schemas_is_refused(alone: BrokerThread) -> None:
    alone.create_topic("wrong", 1)
    with pytest.raises(TopicError, match=r"cleanup\.policy=delete and would lose schemas"):
        ensure(settings_of(alone), "wrong", 1)
    alone.create_topic("many", 2)
    with pytest.raises(TopicError, match="has 2 partitions"):
        ensure(settings_of(alone), "many", 1)


def test_the_instance_whose_address_sorts_first_is_chosen_of_those_that_may_write() -> None:
    members = {
        "x": Instance("a", 1, eligible=False),
        "y": Instance("c", 1),
        "z": Instance("b", 1),
    }
    assert choose(members) == ("z", members["z"])
    assert choose({"x": members["x"]}) is None
    assert Instance.from_document(json.loads(json.dumps(members["y"].as_document()))) == members["y"]


def test_headrace_up_runs_a_registry_beside_the_broker(tmp_path: Any) -> None:
    command = [
        sys.executable,
        "-m",
        "headrace.cli",
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data",
        str(tmp_path / "data"),
    ]
    command += ["--registry", "127.0.0.1:0", "--set", "group.initial.rebalance.delay.ms=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert "is ready: broker" in process.stdout.readline()
    line = process.stdout.readline()
    assert "is ready: schema registry on http://" in line
    rest = Rest(line.split("schema registry on ")[1].split(",")[0])
    assert rest.register("a", record("A", "a")) == 1
    registry = int(subprocess.check_output(["pgrep", "-P", str(process.pid)], text=True).split()[0])
    os.kill(registry, signal.SIGKILL)
    again = process.stdout.readline()
    assert "schema registry on http://" in again
    assert Rest(again.split("schema registry on ")[1].split(",")[0])("GET", "/subjects") == (200, ["a"])
    process.terminate()
    assert process.wait(20) == 0


def test_a_registry_says_what_it_waits_for_and_can_be_stopped_meanwhile() -> None:
    command = [
        sys.executable,
        "-m",
        "headrace.cli",
        "registry",
        "--listen",
        "127.0.0.1:0",
        "-b",
        "127.0.0.1:1",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "still waiting for the topic _schemas from 127.0.0.1:1\n" in process.stderr.readline()
    process.terminate()
    assert process.wait(20) == 0

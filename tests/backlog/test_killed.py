"""Diverts under kill -9 of the command, the broker and the consumers: every record is handled, and exactly once where that is promised."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.backlog import Backlogs, Divert, State, Way, copying
from headrace.client import Admin, Consumer, Producer, TopicPartition
from headrace.client.administration.errors import NotPossible
from headrace.client.scan import scan
from headrace.testing.leash import let_go, start_on_leash
from headrace.testing.process import BrokerProcess
from tests.waiting import until

HANDLER = Path(__file__).parent / "handler.py"
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
}


class Crash(BaseException):
    """Stands for a kill: nothing in the program may catch it."""


class Brittle:
    """Lets the nth change that a `Backlogs` makes be its last: everything before it has happened."""

    def __init__(self, backlogs: Backlogs, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        from headrace.backlog.register import Writer

        monkeypatch.setattr(Writer, "put", self._counted(Writer.put))
        for name in ("move", "forget", "create_like", "remove_topic"):
            monkeypatch.setattr(backlogs.site, name, self._counted(getattr(backlogs.site, name)))

    def _counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*about: Any) -> Any:
            result = change(*about)
            if self.left is not None:
                self.left -= 1
                if self.left == 0:
                    self.left = None
                    raise Crash
            return result

        return counted


@pytest.mark.parametrize("way", [Way.OFFSETS, Way.COPY])
def test_a_command_that_is_killed_after_each_single_step_comes_to_the_same_end(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    brittle = Brittle(backlogs, monkeypatch)
    steps = []
    for place in range(1, 20):
        brittle.left = place
        try:
            divert = backlogs.divert(group, behind, way, settle=0)
        except Crash:
            divert = backlogs.divert(group, behind, way, settle=0)
            steps.append(place)
        brittle.left = None
        assert divert.state is State.DIVERTED
        found = admin.group_offsets(group)
        assert {each.partition: offset for each, offset in found.items()} == divert.cut
        start = {0: 5, 1: 5} if way is Way.OFFSETS else {0: 0, 1: 0}
        found = admin.group_offsets(divert.backlog_group)
        assert {each.partition: offset for each, offset in found.items()} == start
        brittle.left = place
        try:
            backlogs.undo(group, behind)
        except Crash:
            backlogs.undo(group, behind)
        brittle.left = None
        assert set(admin.group_offsets(group).values()) == {5}
        assert divert.backlog_group not in admin.groups()
        if place not in steps:
            break
    assert len(steps) >= 6


def test_a_divert_to_a_fresh_topic_that_is_killed_after_each_single_step_comes_to_the_same_end(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brittle = Brittle(backlogs, monkeypatch)

    def with_a_crash(place: int, operation: Callable[[], Divert]) -> tuple[Divert, bool]:
        brittle.left = place
        try:
            return operation(), False
        except Crash:
            return operation(), True
        finally:
            brittle.left = None

    with Producer(admin_bootstrap(backlogs), routes=True) as producer:
        for place in range(1, 10):
            diverting = with_a_crash(place, lambda: backlogs.divert(group, behind, Way.FRESH))
            assert diverting[0].state is State.DIVERTED
            fresh = diverting[0].fresh
            until(lambda to=fresh: producer.send_and_wait(behind, "x").topic == to, "the route")
            stand_at_the_end(admin, group, behind)
            stand_at_the_end(admin, group, fresh)
            joining = with_a_crash(place, lambda: backlogs.join(group, behind, quiet=0.1))
            assert joining[0].state is State.JOINED
            until(lambda: producer.send_and_wait(behind, "x").topic == behind, "the way back")
            stand_at_the_end(admin, group, fresh)
            if not diverting[1] and not joining[1]:
                break
    assert place >= 4


def stand_at_the_end(admin: Admin, group: str, topic: str) -> None:
    admin.set_group_offsets(group, admin.offsets("latest", admin.partitions_of(topic)))


def test_a_group_that_ran_on_after_the_divert_was_killed_is_not_taken_back(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brittle = Brittle(backlogs, monkeypatch)
    brittle.left = 5  # the cut is committed, and nobody knows
    with pytest.raises(Crash):
        backlogs.divert(group, behind, settle=0)
    assert backlogs.diverts(group)[0].state is State.MOVING
    with Producer(admin_bootstrap(backlogs)) as producer:
        for partition in range(2):
            producer.send_and_wait(behind, "new", partition=partition)
    ahead = {each: offset + 1 for each, offset in admin.group_offsets(group).items()}
    admin.set_group_offsets(group, ahead)
    divert = backlogs.divert(group, behind, settle=0)
    assert divert.state is State.DIVERTED
    assert admin.group_offsets(group) == ahead
    assert set(admin.group_offsets(divert.backlog_group).values()) == {5}


def test_a_group_that_ran_on_before_its_cut_was_committed_is_diverted_from_where_it_is(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brittle = Brittle(backlogs, monkeypatch)
    brittle.left = 4  # all is ready, and the cut is not committed
    with pytest.raises(Crash):
        backlogs.divert(group, behind, settle=0)
    admin.set_group_offsets(group, {TopicPartition(behind, 0): 17})
    divert = backlogs.divert(group, behind, settle=0)
    assert divert.before == {0: 17, 1: 5}
    found = admin.group_offsets(divert.backlog_group)
    assert {each.partition: offset for each, offset in found.items()} == divert.before


def test_a_copy_that_was_cut_short_goes_on_after_its_last_record(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled, batches = copying._settled, []

    def settled_for_the_last_time(waiting: list[Any]) -> int:
        batches.append(settled(waiting))
        if len(batches) == 2:
            raise Crash
        return batches[-1]

    with monkeypatch.context() as once:
        once.setattr(copying, "_AT_ONCE", 20)
        once.setattr(copying, "_settled", settled_for_the_last_time)
        with pytest.raises(Crash):
            backlogs.divert(group, behind, Way.COPY, settle=0)
    (begun,) = backlogs.diverts(group)
    assert begun.state is State.COPYING
    assert sum(admin.offsets("latest", admin.partitions_of(begun.copy)).values()) == 40
    with pytest.raises(NotPossible, match="is not copied completely"):
        backlogs.join(group, behind)
    divert = backlogs.divert(group, behind, Way.COPY)
    assert divert.state is State.DIVERTED
    copies = scan(backlogs.site.connection, dict.fromkeys(admin.partitions_of(divert.copy)))
    found = sorted((each.partition, copying.original_offset(each)) for each in copies)
    assert found == [(number, offset) for number in (0, 1) for offset in range(5, divert.cut[number])]


def test_a_half_made_copy_that_is_given_up_leaves_the_group_where_the_backlog_was_read_to(
    backlogs: Backlogs, admin: Admin, group: str, behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = copying._settled

    def settled_once(waiting: list[Any]) -> None:
        settled(waiting)
        raise Crash

    with monkeypatch.context() as once:
        once.setattr(copying, "_AT_ONCE", 20)
        once.setattr(copying, "_settled", settled_once)
        with pytest.raises(Crash):
            backlogs.divert(group, behind, Way.COPY, settle=0)
    (begun,) = backlogs.diverts(group)
    there = {
        each.partition: end for each, end in admin.offsets("latest", admin.partitions_of(begun.copy)).items()
    }
    read = {number: end for number, end in there.items() if end}
    admin.set_group_offsets(
        begun.backlog_group, {TopicPartition(begun.copy, number): end for number, end in read.items()}
    )
    backlogs.undo(group, behind)
    goes_on = {each.partition: offset for each, offset in admin.group_offsets(group).items()}
    assert goes_on == {number: 5 + end for number, end in there.items()}


def admin_bootstrap(backlogs: Backlogs) -> str:
    return str(backlogs.site.connection["bootstrap.servers"])


class Town:
    """A broker, consumers and commands as processes, all of which may be killed at any time."""

    def __init__(self, directory: Path) -> None:
        self.broker = BrokerProcess(directory / "data", QUICK).start()
        self.running: dict[str, subprocess.Popen[Any]] = {}
        self._counting: dict[str, Consumer] = {}
        self._counted: Counter[str] = Counter()
        self._log = (directory / "programs.log").open("ab")

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def handler(self, kind: str, topic: str, group: str, results: str, name: str, option: str) -> None:
        command = [sys.executable, str(HANDLER), kind, self.bootstrap, topic, group, results, name, option]
        self.running[name] = start_on_leash(command, stdout=self._log, stderr=self._log)

    def keep_running(self, *about: str) -> None:
        """Start it, and start it again whenever it has ended."""
        name = about[4]
        process = self.running.get(name)
        if process is None or process.poll() is not None:
            if process is not None:
                let_go(process)
            self.handler(*about)

    def kill(self, name: str) -> None:
        os.kill(self.running[name].pid, signal.SIGKILL)
        self.ended(name)

    def stop(self, name: str) -> None:
        if self.running[name].poll() is None:
            self.running[name].terminate()
        self.ended(name)

    def ended(self, name: str) -> int:
        process = self.running.pop(name)
        code = process.wait(90)
        let_go(process)
        return code

    def restart_broker(self) -> None:
        self.broker.kill()
        self.broker.start()

    def command(self, *arguments: str) -> subprocess.Popen[Any]:
        command = [sys.executable, "-m", "headrace.cli", "backlog", *arguments]
        environment = {**os.environ, "HEADRACE_BOOTSTRAP": self.bootstrap, "HEADRACE_CONTEXT": ""}
        return start_on_leash(command, stdout=self._log, stderr=self._log, env=environment)

    def kill_when(self, condition: Callable[[], bool], *arguments: str) -> None:
        """Start a command and kill it as soon as the condition holds, unless it has ended before."""
        process = self.command(*arguments)
        until(lambda: process.poll() is not None or condition(), "a moment to kill the command")
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait(90)
        let_go(process)

    def run(self, *arguments: str) -> int:
        process = self.command(*arguments)
        code = process.wait(180)
        let_go(process)
        return code

    def results(self, topic: str) -> list[str]:
        connection = {"bootstrap.servers": self.bootstrap}
        return [
            (record.raw_value or b"").decode()
            for record in scan(connection, {TopicPartition(topic, 0): None})
        ]

    def count(self, topic: str) -> int:
        """How many results there are by now; cheaper to ask again and again."""
        if topic not in self._counting:
            consumer = self._counting[topic] = Consumer(self.bootstrap, isolation_level="read_committed")
            consumer.assign({TopicPartition(topic, 0): 0})
        self._counted[topic] += len(self._counting[topic].poll(0.3))
        return self._counted[topic]

    def close(self) -> None:
        for consumer in self._counting.values():
            consumer.close()
        for name in list(self.running):
            self.kill(name)
        self.broker.kill()
        self._log.close()


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    made = Town(tmp_path)
    yield made
    made.close()


def fill(bootstrap: str, topic: str, first: int, last: int) -> None:
    with Producer(bootstrap) as producer:
        for number in range(first, last):
            producer.send_and_forget(topic, str(number), key=f"key-{number % 7}")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_unmodified_consumers_handle_every_record_exactly_once_through_a_divert_with_a_copy(
    town: Town, protocol: str
) -> None:
    topic, group = "orders", f"billing-{uuid.uuid4().hex[:6]}"
    with Admin(town.bootstrap) as admin:
        admin.create_topic(topic, partitions=2, replication_factor=1)
        admin.create_topic("results", partitions=1, replication_factor=1)
    fill(town.bootstrap, topic, 0, 300)
    group_reads = ("transactional", topic, group, "results", "a", protocol)
    backlog_reads = (
        "transactional", f"{topic}.backlog.{group}", f"{group}.backlog", "results", "b", protocol,
    )  # fmt: skip

    town.handler(*group_reads)
    until(lambda: town.count("results") >= 20, "a consumer at work")
    town.kill("a")
    fill(town.bootstrap, topic, 300, 500)

    asked = (group, "--topic", topic)
    with Backlogs(town.bootstrap) as backlogs:

        def state() -> State | None:
            found = backlogs.diverts(group)
            return found[0].state if found else None

        town.kill_when(lambda: state() is not None, "divert", *asked, "--copy", "--wait", "90s")
        town.kill_when(
            lambda: state() not in (None, State.PREPARING), "divert", *asked, "--copy", "--wait", "90s"
        )
        town.restart_broker()
        assert town.run("divert", *asked, "--copy", "--wait", "90s") == 0
        assert state() is State.DIVERTED

        so_far = town.count("results")
        town.handler(*group_reads)
        town.handler(*backlog_reads)
        fill(town.bootstrap, topic, 500, 600)
        until(lambda: town.count("results") > so_far, "both sides at work")
        town.kill("a")
        town.kill("b")
        town.restart_broker()

        def all_handled() -> bool:
            town.keep_running(*group_reads)
            town.keep_running(*backlog_reads)
            return town.count("results") >= 600

        until(all_handled, "every record handled", 180)
        assert town.run("join", *asked) == 1, "the backlog's consumers still run"
        town.stop("b")
        town.kill_when(lambda: state() is State.JOINING, "join", *asked, "--wait", "90s")
        assert town.run("join", *asked, "--wait", "90s") == 0
        assert state() is State.JOINED
        assert f"{group}.backlog" not in backlogs.site.admin.groups()

    fill(town.bootstrap, topic, 600, 620)

    def the_rest() -> bool:
        town.keep_running(*group_reads)
        return town.count("results") >= 620

    until(the_rest, "the records after the join")
    handled = Counter(town.results("results"))
    assert handled == Counter(str(number) for number in range(620))


def test_a_runner_drains_exactly_up_to_the_cut_though_it_and_the_broker_are_killed(town: Town) -> None:
    topic, group = "orders", f"billing-{uuid.uuid4().hex[:6]}"
    with Admin(town.bootstrap) as admin:
        admin.create_topic(topic, partitions=2, replication_factor=1)
        for name in ("new", "old"):
            admin.create_topic(name, partitions=1, replication_factor=1)
        admin.set_group_offsets(group, {TopicPartition(topic, number): 0 for number in range(2)})
    fill(town.bootstrap, topic, 0, 200)
    asked = (group, "--topic", topic)
    town.kill_when(lambda: True, "divert", *asked)
    assert town.run("divert", *asked, "--wait", "60s") == 0
    fill(town.bootstrap, topic, 200, 260)

    drains = ("drain", topic, group, "old", "d", "100")
    town.handler("transactional", topic, group, "new", "a", "classic")
    town.handler(*drains)
    until(lambda: town.count("old") >= 10, "a runner at work")
    town.kill("d")
    town.restart_broker()
    town.handler(*drains)
    assert town.ended("d") == 0, "it ends by itself when the backlog is drained"
    assert town.run("join", *asked, "--wait", "60s") == 0

    def handled_by_the_group() -> bool:
        town.keep_running("transactional", topic, group, "new", "a", "classic")
        return town.count("new") >= 60

    until(handled_by_the_group, "the new records")
    assert Counter(town.results("new")) == Counter(str(number) for number in range(200, 260))
    old = set(town.results("old"))
    assert {each.partition("@")[0] for each in old} == {repr(str(number).encode()) for number in range(200)}
    assert len(old) == 200, "the same record at the same place, however often"

"""What groups must survive: crashes, silence, twins, zombies, restarts at the worst moment, crowds."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.wire.errors import ErrorCode
from headrace.wire.errors import KafkaError as Refused
from tests.waiting import until

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
}


def make_topic(bootstrap: str, name: str, partitions: int = 4) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions)])[name].result(30)


def write(bootstrap: str, topic: str, count: int = 8, partitions: int = 4) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % partitions)
    assert producer.flush(30) == 0


class Group:
    """Consumers that the test polls itself."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        self.topic = topic
        self.consumers: list[Consumer] = []
        self.errors: list[tuple[Consumer, KafkaError]] = []

    def join(self, **settings: object) -> Consumer:
        named = {
            name if name == "error_cb" else name.replace("_", "."): each for name, each in settings.items()
        }
        if named.get("group.protocol") != "consumer":
            named = {"session.timeout.ms": 1000, "heartbeat.interval.ms": 100, **named}
        consumer = Consumer(self.settings | named)
        consumer.subscribe([self.topic])
        self.consumers.append(consumer)
        return consumer

    def poll_until(self, condition: Callable[[], bool], what: str, *but: Consumer) -> list[bytes]:
        """All consumers except those named poll until the condition holds; returns what they got."""
        values = []

        def polled() -> bool:
            for consumer in self.consumers:
                message = None if consumer in but else consumer.poll(0)
                if message is None:
                    continue
                if message.error() is not None:
                    self.errors.append((consumer, message.error()))
                else:
                    values.append(message.value())
            return condition()

        until(polled, what)
        return values

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.close()


@pytest.fixture
def group(make_broker) -> Iterator[Group]:
    broker = make_broker(QUICK)
    make_topic(broker.bootstrap, "work")
    group = Group(broker.bootstrap, "workers", "work")
    group.broker = broker
    yield group
    group.close()


def owned(consumer: Consumer) -> int:
    return len(consumer.assignment())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_dies_without_leaving_is_replaced(group: Group, protocol: str) -> None:
    program = f"""
        from confluent_kafka import Consumer
        settings = {group.settings | {"group.protocol": protocol}!r}
        if {protocol!r} == "classic":
            settings |= {{"session.timeout.ms": 1000, "heartbeat.interval.ms": 100}}
        consumer = Consumer(settings)
        consumer.subscribe(["work"], on_assign=lambda _, partitions: print("ready", flush=True))
        while True:
            consumer.poll(0.1)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline().strip() == "ready"
        survivor = group.join(group_protocol=protocol)
        group.poll_until(lambda: owned(survivor) == 2, "the survivor's half")
        victim.kill()
        group.poll_until(lambda: owned(survivor) == 4, "everything for the survivor")


def test_a_member_that_stops_polling_loses_its_partitions_and_comes_back_when_it_polls(group: Group) -> None:
    lazy = group.join(max_poll_interval_ms=1000)
    group.poll_until(lambda: owned(lazy) == 4, "the first assignment")
    busy = group.join()
    group.poll_until(lambda: owned(lazy) == owned(busy) == 2, "halves")
    group.poll_until(lambda: owned(busy) == 4, "everything for the one that polls", lazy)
    with pytest.raises(KafkaException) as fenced:
        lazy.commit(offsets=[TopicPartition("work", 0, 5)], asynchronous=False)
    assert fenced.value.args[0].code() in (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID)
    group.poll_until(lambda: owned(lazy) == owned(busy) == 2, "halves again")


def test_of_two_with_one_instance_id_the_older_is_told_and_stops(group: Group) -> None:
    older = group.join(group_instance_id="twin")
    group.poll_until(lambda: owned(older) == 4, "the first assignment")
    younger = group.join(group_instance_id="twin")
    group.poll_until(lambda: owned(younger) == 4, "the younger twin's assignment")

    def fenced() -> bool:
        return any(
            consumer is older and error.code() == KafkaError._FATAL for consumer, error in group.errors
        )

    group.poll_until(fenced, "the older twin's end")


def test_a_static_member_restarts_and_the_others_go_on_without_a_rebalance(group: Group) -> None:
    rebalances = []
    steady = Consumer(group.settings | {"group.instance.id": "steady", "session.timeout.ms": 6000})
    steady.subscribe(["work"], on_assign=lambda _, partitions: rebalances.append(len(partitions)))
    group.consumers.append(steady)
    group.poll_until(lambda: owned(steady) == 4, "the first assignment")
    moody = group.join(group_instance_id="moody", session_timeout_ms=6000)
    group.poll_until(lambda: owned(steady) == owned(moody) == 2, "halves")
    before = len(rebalances)
    had = {each.partition for each in moody.assignment()}
    group.consumers.remove(moody)
    moody.close()
    back = group.join(group_instance_id="moody", session_timeout_ms=6000)
    group.poll_until(lambda: owned(back) == 2, "the old assignment")
    assert {each.partition for each in back.assignment()} == had
    assert len(rebalances) == before


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_broker_restart_leaves_a_stable_group_as_it_was(group: Group, protocol: str) -> None:
    write(group.broker.bootstrap, "work")
    patience = {"session_timeout_ms": 6000} if protocol == "classic" else {}
    member = group.join(group_protocol=protocol, **patience)
    got: list[bytes] = []
    until(lambda: _collect(member, got) >= 8, "the records before the restart")
    member.commit(asynchronous=False)
    group.broker.stop()
    group.broker.start()
    write(group.broker.bootstrap, "work")
    fresh: list[bytes] = []
    until(lambda: _collect(member, fresh) >= 8, "the records after the restart")
    assert len(fresh) == 8, "nothing is delivered twice when the commit is there"
    member.commit(asynchronous=False)


def _collect(consumer: Consumer, into: list[bytes]) -> int:
    message = consumer.poll(0.1)
    if message is not None and message.error() is None:
        into.append(message.value())
    return len(into)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_broker_restart_in_the_middle_of_a_rebalance_ends_in_a_stable_group(
    group: Group, protocol: str
) -> None:
    first = group.join(group_protocol=protocol)
    group.poll_until(lambda: owned(first) == 4, "the first assignment")
    second = group.join(group_protocol=protocol)
    # The rebalance has begun when the group is no longer stable; then the broker goes.
    admin = AdminClient({"bootstrap.servers": group.broker.bootstrap})

    def rebalancing() -> bool:
        second.poll(0)
        described = admin.describe_consumer_groups(["workers"])["workers"].result(30)
        return described.state.name != "STABLE" or len(described.members) > 1

    until(rebalancing, "the rebalance")
    group.broker.stop()
    group.broker.start()
    write(group.broker.bootstrap, "work")
    got: set[bytes] = set()

    def settled() -> bool:
        for consumer in (first, second):
            message = consumer.poll(0)
            if message is not None and message.error() is None:
                got.add(message.value())
        return owned(first) == owned(second) == 2 and len(got) == 8

    until(settled, "halves, and every record")


def test_kill_9_of_the_broker_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    settings = {**QUICK, "log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0"}

    def start() -> tuple[subprocess.Popen[str], str]:
        arguments = [f"--set={name}={value}" for name, value in settings.items()]
        broker = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "up", *arguments], stdout=subprocess.PIPE, text=True
        )
        assert broker.stdout is not None
        ready = broker.stdout.readline()
        address = ready.split(" on ")[1].split(",")[0]
        settings["listeners"] = f"PLAINTEXT://{address}"
        return broker, address

    broker, bootstrap = start()
    try:
        make_topic(bootstrap, "work")
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "workers", "enable.auto.commit": False}
        )
        acknowledged = 0
        for offset in range(1, 200):
            consumer.commit(offsets=[TopicPartition("work", 0, offset)], asynchronous=False)
            acknowledged = offset
        os.kill(broker.pid, signal.SIGKILL)
        broker.wait()
        broker, bootstrap = start()
        (committed,) = consumer.committed([TopicPartition("work", 0)], timeout=30)
        assert committed.offset == acknowledged
        consumer.close()
    finally:
        broker.kill()
        broker.wait()


# Crowds, where no real client is needed


async def test_thousands_of_groups_are_loaded_while_the_loop_serves_others(groups) -> None:
    for start in range(0, 5000, 500):
        await asyncio.gather(
            *(groups.commit(number, group=f"g{number}") for number in range(start, start + 500))
        )
    turns = 0

    async def bystander() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    watching = asyncio.create_task(bystander())
    groups.coordinator.close()
    await groups.start()
    await groups.until_loaded()
    watching.cancel()
    assert turns > 5
    assert len(groups.coordinator.list([], [])) == 5000
    assert [await groups.fetch(f"g{n}") for n in (0, 1234, 4999)] == [(0, 0), (1234, 0), (4999, 0)]


async def test_commits_faster_than_the_replicas_wait_in_order_and_share_appends(groups) -> None:
    log = groups.log("group")
    log.hold = True
    commits = []
    for turn in range(20):
        commits += [groups.commit(turn * 50 + number) for number in range(50)]
        await groups.settle()
    assert len(log.batches) == 20
    assert not any(commit.done() for commit in commits)
    log.commit()
    await asyncio.gather(*commits)
    assert await groups.fetch() == (999, 0)


async def test_while_a_group_is_loaded_its_members_are_told_to_wait_and_heartbeats_succeed(groups) -> None:
    (leader,) = await groups.stable_group(1)
    partition = groups.coordinator.partition_for("group")
    groups.coordinator.lead(partition, groups.logs[partition])
    with pytest.raises(Refused) as loading:
        groups.join(member=leader.member_id)
    assert loading.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.NONE
    await groups.settle()
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.NONE


async def test_a_broker_that_lost_the_leadership_sends_everybody_away(groups) -> None:
    (leader,) = await groups.stable_group(1)
    pending = groups.join(member=await groups.member_id())
    groups.log("group").hold = True
    commit = groups.commit(1, member=leader.member_id, generation=1)
    await groups.settle()
    groups.coordinator.resign(groups.coordinator.partition_for("group"))
    assert (await pending).error_code == ErrorCode.NOT_COORDINATOR
    with pytest.raises(Refused) as moved:
        await commit
    assert moved.value.code == ErrorCode.NOT_COORDINATOR
    assert groups.heartbeat(leader.member_id, 1) == ErrorCode.NOT_COORDINATOR


async def test_an_assignment_that_cannot_be_stored_makes_the_group_rebalance_again(groups) -> None:
    joining = groups.join(version=3)
    await groups.pass_time(0)
    joined = await joining
    log = groups.log("group")
    log.refuse = Refused(ErrorCode.NOT_ENOUGH_REPLICAS, "no")
    assert (await groups.sync(joined)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    log.refuse = None
    again = await groups.join(member=joined.member_id)
    assert again.generation_id == 2
    assert (await groups.sync(again)).error_code == 0

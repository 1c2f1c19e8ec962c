"""Transactions: Java's producer and consumer, franz-go's transactional sessions, Kafka's tools; brokers killed in the middle."""

import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.provision import java
from bench.systems.kafka_protocol import KafkaProtocolSystem, RunningKafka
from headrace.testing import cluster
from headrace.testing.process import BrokerProcess
from headrace.testing.wire import WireClient, batch
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.wire.records import BatchBuilder
from interop.kafka.programs import FRANZ, JAVA_CLIENT, Program, finish

Tool = Callable[..., str]

RECORDS = 2000
FEW_PARTITIONS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


def test_java_readers_see_committed_transactions_whole_and_aborted_ones_never(broker: RunningKafka) -> None:
    topic = "java-transactions"
    broker.create(topic, 3)
    JAVA_CLIENT.run("transactions", broker.address, topic, "3")
    committed = {f"committed-{n}-{i}" for n in range(30) if n % 3 != 2 for i in range(3)}
    aborted = {f"aborted-{n}-{i}" for n in range(30) if n % 3 == 2 for i in range(3)}
    seen = JAVA_CLIENT.run("isolated", broker.address, topic, "read_committed").splitlines()
    assert Counter(seen) == Counter({*committed, "committed-by-the-successor"})
    everything = JAVA_CLIENT.run("isolated", broker.address, topic, "read_uncommitted").splitlines()
    assert Counter(everything) == Counter({*committed, *aborted, "zombie", "committed-by-the-successor"})


# Chains from topic to topic, while brokers die.


def fill(bootstrap: str, replication: int) -> None:
    """An input topic with records 0 to RECORDS - 1, and an empty output topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic("input", 3, replication), NewTopic("output", 3, replication)])
    for topic in made.values():
        topic.result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce("input", str(number), str(number))
    assert producer.flush(60) == 0


def output(bootstrap: str) -> Counter[int]:
    """What a reader of committed records finds in the output, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "count",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("output", partition, 0) for partition in range(3)])
    found: Counter[int] = Counter()
    ended: set[int] = set()
    deadline = time.monotonic() + 60
    while len(ended) < 3:
        assert time.monotonic() < deadline, f"the ends of {set(range(3)) - ended} were not reached"
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:
            partition = message.partition()
            assert partition is not None
            ended.add(partition)
        else:
            found[int(message.value() or b"")] += 1
    consumer.close()
    return found


def copy(program: Program, bootstrap: str, disturb: Callable[[], None], errors: Path) -> None:
    """Runs a program's chain and disturbs it twice, each time after some more transactions."""
    running = program.start("chain", bootstrap, "input", "output", str(RECORDS), errors=errors)
    assert running.stdout is not None
    copied = 0
    disturb_at = [RECORDS // 5, RECORDS // 2]
    try:
        for line in running.stdout:
            if line.startswith("committed "):  # the others are the client's log
                copied += int(line.removeprefix("committed "))
            if disturb_at and copied >= disturb_at[0]:
                disturb_at.pop(0)
                disturb()
        assert running.wait(60) == 0, errors.read_text()[-4000:]
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
    assert not disturb_at, f"only {copied} records were copied before the end"


EXACTLY_ONCE = Counter(range(RECORDS))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", [JAVA_CLIENT, FRANZ], ids=lambda program: program.name)
def test_a_chain_copies_exactly_once_though_its_broker_is_killed(program: Program, tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data", FEW_PARTITIONS).start()

    def disturb() -> None:
        broker.kill()
        broker.start()

    try:
        fill(broker.bootstrap, 1)
        copy(program, broker.bootstrap, disturb, tmp_path / "errors")
        assert output(broker.bootstrap) == EXACTLY_ONCE
    finally:
        broker.kill()


def coordinator(bootstrap: str, transactional_id: str) -> int:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    for address in bootstrap.split(","):
        with contextlib.suppress(OSError), WireClient(address) as client:
            answer = client.call(request, 4)
            assert isinstance(answer, FindCoordinatorResponse)
            if answer.coordinators[0].error_code == 0:
                return answer.coordinators[0].node_id
    raise AssertionError(f"nobody knows the coordinator of {transactional_id}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("program", "transactional_id"),
    [(JAVA_CLIENT, "input-chain"), (FRANZ, "input-etl")],
    ids=["java", "franz"],
)
def test_a_chain_copies_exactly_once_though_its_coordinator_is_killed(
    program: Program, transactional_id: str, tmp_path: Path
) -> None:
    settings = {**FEW_PARTITIONS, "min.insync.replicas": "2"}
    with cluster.processes(tmp_path, 3, settings) as brokers:

        def disturb() -> None:
            victim = brokers[coordinator(brokers.bootstrap, transactional_id)]
            victim.kill()
            time.sleep(0.5)  # long enough to be missed, not synchronisation
            victim.start()

        fill(brokers.bootstrap, 3)
        copy(program, brokers.bootstrap, disturb, tmp_path / "errors")
        assert output(brokers.bootstrap) == EXACTLY_ONCE


# Kafka's tools.


@pytest.fixture
def unverified(system: KafkaProtocolSystem, tmp_path: Path) -> Iterator[RunningKafka]:
    """A broker that does not verify transactional writes, so that one can be left hanging."""
    settings = {"transaction.partition.verification.enable": "false", **FEW_PARTITIONS}
    with system.start(tmp_path / "data", settings) as running:
        yield running


def leave_hanging(bootstrap: str, topic: str) -> int:
    """A transactional write of long ago that no coordinator was told of; whose it is."""
    with WireClient(bootstrap) as client:
        producer = client.call(InitProducerIdRequest(None, 60000), 4)
        assert isinstance(producer, InitProducerIdResponse)
        builder = BatchBuilder(
            producer_id=producer.producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
        data = PartitionProduceData(0, batch(b"lost", builder=builder))
        request = ProduceRequest("nobody", -1, 10000, [TopicProduceData(topic, partition_data=[data])])
        answer = client.call(request, 9)
        assert isinstance(answer, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0
        return producer.producer_id


def test_kafkas_transactions_tool_lists_describes_finds_and_aborts(unverified: RunningKafka) -> None:
    def tool(*arguments: str) -> list[list[str]]:
        command = java("org.apache.kafka.tools.TransactionsCommand")
        output = finish([*command, "--bootstrap-server", unverified.address, *arguments])
        return [line.split() for line in output.splitlines() if line.strip()]

    unverified.create("tool")
    # Longer than the tools may take to start on a busy machine: it must be open until they have looked.
    settings = {"transactional.id": "tool-id", "transaction.timeout.ms": 600_000}
    producer = Producer({"bootstrap.servers": unverified.address, **settings})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("tool", b"open")
    producer.flush(30)
    hanging = leave_hanging(unverified.address, "tool")
    assert ["tool-id", "1"] in [row[:2] for row in tool("list")]
    described = tool("describe", "--transactional-id", "tool-id")[1]
    assert (described[4], described[-1]) == ("Ongoing", "tool-0")
    producers = tool("describe-producers", "--topic", "tool", "--partition", "0")[1:]
    assert {row[0] for row in producers} >= {str(hanging)}
    (found,) = tool("find-hanging", "--topic", "tool")[1:]
    assert found[:3] == ["tool", "0", str(hanging)]
    tool("abort", "--topic", "tool", "--partition", "0", "--start-offset", found[5])
    assert tool("find-hanging", "--broker-id", "1")[1:] == []
    producer.commit_transaction(60)
    assert tool("describe", "--transactional-id", "tool-id")[1][4] in ("PrepareCommit", "CompleteCommit")


def test_kafkas_features_tool_switches_the_transaction_protocol(
    system: KafkaProtocolSystem, tmp_path: Path
) -> None:
    """Java's producer works with either protocol."""
    with system.start(tmp_path / "data", FEW_PARTITIONS) as running:

        def tool(*arguments: str) -> str:
            command = java("org.apache.kafka.tools.FeatureCommand")
            return finish([*command, "--bootstrap-server", running.address, *arguments])

        def level() -> int:
            match = re.search(r"transaction\.version\s.*FinalizedVersionLevel: (\d)", tool("describe"))
            assert match is not None
            return int(match[1])

        assert level() == 2
        tool("downgrade", "--feature", "transaction.version=1")
        assert level() == 1
        running.create("switched", 3)
        JAVA_CLIENT.run("transactions", running.address, "switched", "3")
        tool("upgrade", "--feature", "transaction.version=2")
        assert level() == 2

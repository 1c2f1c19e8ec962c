"""A chain from topic to topic, disturbed at every step of its transactions: each record is copied exactly once."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

CHAIN = Path(__file__).parent / "chain.py"
COUNT = 150
STEPS = ("consumed", "begun", "produced", "flushed", "offsets sent", "committing", "committed")


@pytest.fixture
def source(headrace_broker, headrace_topic):
    topic = headrace_topic()
    producer = Producer({"bootstrap.servers": headrace_broker.bootstrap})
    for number in range(COUNT):
        producer.produce(topic, str(number))
    assert producer.flush(60) == 0
    return topic


@pytest.fixture
def target(headrace_topic):
    return headrace_topic()


@pytest.fixture
def run(headrace_broker, source, target):
    def chain(step):
        program = [sys.executable, CHAIN, headrace_broker.bootstrap, source, target, source, str(COUNT), step]
        return subprocess.run(program, timeout=110, check=False, stderr=subprocess.DEVNULL).returncode

    return chain


@pytest.fixture
def copied(headrace_broker, target):
    def read():
        consumer = Consumer(
            {
                "bootstrap.servers": headrace_broker.bootstrap,
                "group.id": "count",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(target, 0, 0)])
        found = []
        while (message := consumer.poll(60)).error() is None:
            found.append(int(message.value()))
        assert message.error().code() == KafkaError._PARTITION_EOF
        consumer.close()
        return found

    return read


def test_a_chain_that_is_killed_at_every_step(run, copied):
    for step in STEPS:
        assert run(step) == -signal.SIGKILL, f"it was not killed when it had {step}"
        assert copied() == list(range(len(copied()))), step
    assert run("none") == 0
    assert copied() == list(range(COUNT))


@pytest.mark.parametrize("lost", ["drop", "drop_reply"])
def test_a_chain_whose_requests_or_answers_are_lost_at_every_step(headrace_broker, run, copied, lost):
    for api in (
        "InitProducerId",
        "AddPartitionsToTxn",
        "Produce",
        "AddOffsetsToTxn",
        "TxnOffsetCommit",
        "EndTxn",
    ):
        getattr(headrace_broker.faults, lost)(api)
    assert run("none") == 0
    assert headrace_broker.faults.left == 0
    assert copied() == list(range(COUNT))

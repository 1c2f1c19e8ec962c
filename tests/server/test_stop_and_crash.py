"""A broker that is stopped, killed, or started on what another one holds."""

import random
import threading

import pytest
from confluent_kafka import Producer

from headrace.server.log.directory import CLEAN_STOP
from headrace.testing.process import BrokerProcess
from tests.server.clients import create, messages, produce


@pytest.fixture
def process(tmp_path):
    broker = BrokerProcess(tmp_path / "data").start()
    yield broker
    broker.kill()


def read_all(bootstrap, topic):
    return [(each.offset(), each.value()) for each in messages(bootstrap, topic)]


def test_sigterm_stops_cleanly_and_the_next_start_serves_everything(process):
    create(process.bootstrap, "kept")
    produce(process.bootstrap, "kept", *(b"%d" % index for index in range(1000)))
    assert process.stop() == 0
    assert (process.data / CLEAN_STOP).exists()
    process.start()
    assert not (process.data / CLEAN_STOP).exists()
    assert read_all(process.bootstrap, "kept") == [(index, b"%d" % index) for index in range(1000)]


def test_a_data_directory_in_use_is_refused_in_one_sentence(process):
    with pytest.raises(RuntimeError, match="held by another broker") as refusal:
        BrokerProcess(process.data).start()
    assert "Traceback" not in str(refusal.value)


def test_a_port_in_use_is_refused_in_one_sentence(process, tmp_path):
    other = BrokerProcess(tmp_path / "other")
    other.port = process.port
    with pytest.raises(RuntimeError, match="Cannot listen on") as refusal:
        other.start()
    assert "Traceback" not in str(refusal.value)


@pytest.mark.parametrize(
    ("seed", "settings"), [(1, {}), (2, {"segment.bytes": "1048576"}), (3, {"flush.messages": "1"})]
)
def test_kill_9_loses_no_acknowledged_record(process, seed, settings):
    """Four deaths at random moments under load; afterwards every acknowledged record is there, once, in order."""
    dice = random.Random(seed)
    create(process.bootstrap, "ledger", config=settings)
    acknowledged: dict[int, bytes] = {}
    number = 0

    def acknowledge(error, message):
        if error is None:
            acknowledged[message.offset()] = message.value()

    for _ in range(4):
        producer = Producer(
            {
                "bootstrap.servers": process.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 60000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        killer = threading.Timer(dice.uniform(0.05, 0.4), process.kill)
        killer.start()
        while killer.is_alive():
            for _ in range(50):
                producer.produce(
                    "ledger", b"%d %s" % (number, b"x" * dice.randrange(200)), on_delivery=acknowledge
                )
                number += 1
            producer.poll(0.001)
        killer.join()
        process.start()
        assert producer.flush(60) == 0
    records = read_all(process.bootstrap, "ledger")
    assert len(acknowledged) == number
    found = dict(records)
    assert all(found[offset] == value for offset, value in acknowledged.items())
    numbers = [int(value.split()[0]) for _, value in records]
    assert numbers == sorted(set(numbers)), "a record is doubled or out of order"

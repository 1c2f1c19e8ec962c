"""The lag of share groups: what is not finished counts, whatever the order in which members finish it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from headrace.client import Producer
from headrace.client.lag import LagMonitor
from headrace.client.lag_states import LagState
from headrace.testing.broker import BrokerThread
from tests.server.metrics.scraping import METRICS, Samples
from tests.server.share.group_settings import configure
from tests.waiting import until

GROUP, TOPIC = "workers", "orders"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), METRICS) as running:
        running.create_topic(TOPIC)
        configure(running.bootstrap, GROUP, {"share.auto.offset.reset": "earliest"})
        yield running


def consumer_of(broker: BrokerThread) -> ShareConsumer:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": GROUP, "log_level": 0}
    consumer = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
    consumer.subscribe([TOPIC])
    return consumer


def test_what_is_finished_out_of_order_is_read_and_the_oldest_unfinished_record_has_its_age(
    broker: BrokerThread,
) -> None:
    with Producer(broker.bootstrap) as producer, LagMonitor(broker.bootstrap, window=1.0) as monitor:
        for number in range(10):
            producer.send_and_wait(TOPIC, str(number))
        consumer = consumer_of(broker)
        taken: list[Message] = []
        until(lambda: (taken.extend(consumer.poll(0.5)), len(taken) == 10)[1], "all records")
        begun = monitor.measure(GROUP)
        assert (begun.kind, begun.members, begun.records) == ("share", 1, 10)
        assert GROUP in monitor.groups()
        for message in taken[4:]:
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        consumer.commit_sync()
        until(lambda: monitor.measure(GROUP).state == LagState.DRAINING, "that six are finished")
        [partition] = (lag := monitor.measure(GROUP)).partitions
        assert (partition.committed, partition.end, lag.records) == (0, 10, 4)
        assert lag.seconds is not None
        assert lag.seconds > 0
        until(lambda: monitor.measure(GROUP).state == LagState.STALLED, "that nothing is finished any more")
        for message in taken[:4]:
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        consumer.commit_sync()
        until(lambda: monitor.measure(GROUP).state == LagState.OK, "that all is finished")
        consumer.close()
        producer.send_and_wait(TOPIC, "late")
        until(lambda: monitor.measure(GROUP).state == LagState.GONE, "that nobody is left")
        assert monitor.measure(GROUP).records == 1
    assert Samples(broker).one("kafka_consumergroup_members", consumergroup=GROUP) == 0

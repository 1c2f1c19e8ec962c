"""A runner as a member of a share group: a work queue with an acknowledgement for each record."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from headrace.client import (
    Admin,
    AsyncRunner,
    BrokerError,
    ConfigError,
    Hook,
    Producer,
    Record,
    Reject,
    Retry,
    Runner,
)
from headrace.testing.broker import BrokerThread
from headrace.testing.topics import create_topic, unique_name
from headrace.testing.wire import WireClient
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.server.share.group_settings import configure
from tests.waiting import until

LOCK = {
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> object:
    with BrokerThread(tmp_path_factory.mktemp("broker"), LOCK) as running:
        yield running


@pytest.fixture
def topic(broker: BrokerThread) -> str:
    name = unique_name("jobs")
    create_topic(broker.bootstrap, name)
    configure(broker.bootstrap, f"{name}-workers", {"share.auto.offset.reset": "earliest"})
    return name


def set_share_version(broker: BrokerThread, level: int) -> None:
    with WireClient(broker.bootstrap) as client:
        update = FeatureUpdateKey("share.version", level, upgrade_type=1 if level else 2)
        assert client.call(UpdateFeaturesRequest(1000, [update]), 2).error_code == 0


def produce(broker: BrokerThread, topic: str, *values: bytes) -> None:
    with Producer(broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value)


def run(
    broker: BrokerThread, topic: str, handler: object, over: object, members: int = 1, **more: object
) -> None:
    """Until `over()`."""
    runners = [
        Runner(
            handler,
            broker.bootstrap,
            topics=topic,
            group_id=f"{topic}-workers",
            group_type="share",
            **more,
        )
        for _ in range(members)
    ]
    threads = [threading.Thread(target=each.run) for each in runners]
    for thread in threads:
        thread.start()
    try:
        until(over)
    finally:
        for each in runners:
            each.stop()
        for thread in threads:
            thread.join()


def test_members_share_one_partition_and_handle_each_record_once(broker, topic):
    values = [str(number).encode() for number in range(200)]
    produce(broker, topic, *values)
    handled: list[bytes] = []
    run(broker, topic, lambda record: handled.append(record.value), lambda: len(handled) >= 200, members=3)
    assert Counter(handled) == Counter(values)


def test_a_record_that_fails_is_delivered_again(broker, topic):
    produce(broker, topic, b"flaky", b"fine")
    handled: list[bytes] = []
    tries: Counter[bytes] = Counter()

    def handle(record: Record[bytes, bytes]) -> None:
        tries[record.value] += 1
        if record.value == b"flaky" and tries[record.value] < 3:
            raise OSError("not yet")
        handled.append(record.value)

    run(broker, topic, handle, lambda: len(handled) == 2)
    assert tries == {b"flaky": 3, b"fine": 1}


def test_what_fails_for_good_becomes_a_dead_letter_with_the_number_of_its_delivery(broker, topic):
    produce(broker, topic, b"bad", b"hopeless")

    def handle(record: Record[bytes, bytes]) -> None:
        if record.value == b"hopeless":
            raise Reject("never")
        raise ValueError("bad")

    found: dict[bytes, int] = {}

    class Letters(Hook):
        def dead_letter(self, record, attempt, error):
            found[record.value] = attempt

    run(broker, topic, handle, lambda: len(found) == 2, retry=Retry(attempts=2), hooks=[Letters()])
    assert found == {b"bad": 2, b"hopeless": 1}
    with Admin(broker.bootstrap) as admin:
        assert f"{topic}.dlq" in admin.topics()


@pytest.mark.parametrize("wrong", [{"order": "key"}, {"diverts": True}, {"start_offsets": lambda _: None}])
def test_what_needs_an_order_is_refused(topic, wrong):
    with pytest.raises(ConfigError, match="keeps no order"):
        Runner(print, "localhost:1", topics=topic, group_id="g", group_type="share", **wrong)


def test_other_kinds_of_groups_and_the_other_runner_are_refused():
    with pytest.raises(ConfigError, match="choose"):
        Runner(print, "localhost:1", topics="t", group_id="g", group_type="streams")
    with pytest.raises(ConfigError, match="use Runner"):
        AsyncRunner(print, "localhost:1", topics="t", group_id="g", group_type="share")


def test_a_cluster_without_share_groups_says_how_to_switch_them_on(broker: BrokerThread, topic: str) -> None:
    set_share_version(broker, 0)
    runner = Runner(print, broker.bootstrap, topics=topic, group_id=f"{topic}-workers", group_type="share")
    try:
        with pytest.raises(BrokerError, match=r"headrace features set share\.version=2"):
            runner.run()
    finally:
        set_share_version(broker, 2)

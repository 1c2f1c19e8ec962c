"""Brokers die on both sides while a topic is mirrored: the copy stays a copy, and a failover keeps what it states."""

import itertools
import threading

import pytest
from confluent_kafka import Producer

from headrace.client.administration import mirrors
from headrace.testing.cluster import threads
from tests.server.mirror.dc import Site, produce, segments
from tests.waiting import until


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    with threads(tmp_path_factory.mktemp("source"), 2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    with threads(tmp_path_factory.mktemp("target"), 2, {"default.replication.factor": 2}) as cluster:
        Site(cluster.bootstrap).allow_links()
        yield cluster


class Load:
    """An idempotent producer in a thread; remembers which offset each record was acknowledged at."""

    def __init__(self, bootstrap, topic):
        self.acknowledged = {}
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1}
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        def delivered(error, message):
            if error is None:
                self.acknowledged[message.offset()] = message.value()

        for number in itertools.count():
            if self._stop.wait(0.001):
                break
            self._producer.produce(self._topic, b"%d" % number, on_delivery=delivered)
            self._producer.poll(0)
        self._producer.flush(60)


def leader_of(cluster, topic):
    def look(node):
        async def state():
            return node.cluster.image.partition(topic, 0)

        return state()

    for broker in cluster:
        try:
            return broker.run(look)
        except (RuntimeError, AttributeError):
            continue
    raise AssertionError("no broker runs")


def test_a_copy_stays_a_copy_when_leaders_die_on_both_sides(source, target):
    topic = source.create_topic(config={"min.insync.replicas": 1})
    site = Site(target.bootstrap).link(source.bootstrap, topics=[topic])
    with Load(source.bootstrap, topic) as load:
        for cluster in (source, target, source):
            reached = len(load.acknowledged)
            until(lambda reached=reached: len(load.acknowledged) > reached + 200, "progress")
            until(lambda: (found := site.topic(topic)) and found.positions, "a mirror")
            victim = leader_of(cluster, topic).leader
            cluster[victim].kill()
            reached = len(load.acknowledged)
            until(lambda reached=reached: len(load.acknowledged) > reached + 200, "progress without it")
            cluster[victim].start()
            until(lambda cluster=cluster: len(leader_of(cluster, topic).isr) == 2, "the ISR")
        until(lambda: len(site.topic(topic).positions) == 1, "the mirror")
    ends = [max(load.acknowledged) + 1]
    until(lambda: site.topic(topic).positions[0].end_offset >= ends[0], "the copy of all")
    site.call(mirrors.fail_over, "dc")
    site.await_state(topic, "failed over")
    (end,) = site.topic(topic).ends
    assert end.lost_records == 0
    # Epochs continue above all of the source's.
    assert leader_of(target, topic).leader_epoch > leader_of(source, topic).leader_epoch
    assert produce(target[leader_of(target, topic).leader].bootstrap, topic, b"on").error_code == 0
    source_bytes = segments(source[leader_of(source, topic).leader].data, topic)
    logs = [segments(broker.data, topic) for broker in target]
    assert logs[0][: len(source_bytes)] == source_bytes
    until(lambda: len({segments(broker.data, topic) for broker in target}) == 1, "equal replicas")

"""A disk that does not answer takes one thread of the broker's from the scrapes, however many there are."""

import threading

import pytest

from headrace.server.metrics import broker as of_the_broker
from headrace.server.metrics import ends as of_partitions
from headrace.server.metrics.ends import Ends
from tests.server.metrics.scraping import METRICS, Samples
from tests.waiting import until


@pytest.fixture
def hanging():
    """(what to call in place of something that waits for a disk, how often it was called, what ends the waiting)"""
    calls, go_on = [], threading.Event()

    def hang(*args):
        calls.append(args)
        assert go_on.wait(60)
        return 0

    yield hang, calls, go_on
    go_on.set()


def test_scrapes_do_not_pile_up_behind_a_disk_that_does_not_tell_its_size(make_broker, monkeypatch, hanging):
    hang, calls, go_on = hanging
    broker = make_broker(METRICS)
    sizes = of_the_broker._rooms
    monkeypatch.setattr(of_the_broker, "_rooms", lambda paths: hang() or sizes(paths))
    monkeypatch.setattr(of_the_broker, "WAIT_SECONDS", 0.05)
    for _ in range(3):
        assert "headrace_disk_size_bytes" not in Samples(broker).names
    assert len(calls) == 1
    go_on.set()
    until(lambda: "headrace_disk_size_bytes" in Samples(broker).names)


def test_scrapes_do_not_pile_up_behind_a_log_that_cannot_be_read(make_broker, monkeypatch, hanging):
    hang, calls, go_on = hanging
    broker = make_broker()
    topic = broker.create_topic()
    monkeypatch.setattr(of_partitions, "_read", hang)
    monkeypatch.setattr(of_partitions, "WAIT_SECONDS", 0.05)

    async def look(node):
        ends = Ends(node.replicas, node.peers, node.engines.disk, node.clock)
        for start in range(3):
            await ends.look_up({(topic, 0, start)})
        before = len(calls)
        monkeypatch.setattr(of_partitions, "WAIT_SECONDS", 60)
        go_on.set()
        await ends.look_up({(topic, 0, 3)})
        return before, len(calls)

    assert broker.run(look) == (1, 2)

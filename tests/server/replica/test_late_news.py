"""One broker learns of a change long after another: nothing may wait forever because of that."""

import contextlib

import pytest

from headrace.testing import cluster as testing
from headrace.testing.wire import WireClient
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.server.clients import create, delete, produce
from tests.server.replica.logs import log_end_offset
from tests.waiting import until


@pytest.fixture
def cluster(tmp_path):
    settings = {"replica.lag.time.max.ms": "2000", "replica.fetch.backoff.ms": "200"}
    running = testing.threads(tmp_path, 3, settings)
    yield running
    running.stop()


def reassign(cluster, topic, target):
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(topic, [ReassignablePartition(0, target)])]
    )
    with WireClient(cluster[3].bootstrap) as client:
        response = client.call(request, 1)
    assert response.responses[0].partitions[0].error_code == 0


@contextlib.contextmanager
def unaware(broker, *, coalesce=False):
    """What the broker holds follows the cluster's image only at the end: change by change, or all of them as one."""

    async def begin(node):
        images = []
        apply = node.replicas.apply
        node.replicas.apply = images.append
        return images, apply

    async def end(node):
        del node.replicas.apply
        for image in images[-1:] if coalesce else images:
            apply(image)

    images, apply = broker.run(begin)
    try:
        yield
    finally:
        broker.run(end)


def look(broker, function):
    async def on_its_loop(node):
        return function(node)

    return broker.run(on_its_loop)


def rests(broker, leader, topic):
    """Whether the leader has turned the broker away at least once."""

    def find(node):
        fetcher = node.replicas.replication._fetchers.get(leader)
        known = node.cluster.image.topics[topic]
        return fetcher is not None and (known.id, 0) in fetcher._backoffs

    return look(broker, find)


def state(cluster, topic):
    return look(cluster[3], lambda node: node.cluster.image.partition(topic, 0))


def settled_on(cluster, topic, *replicas):
    found = state(cluster, topic)
    return not found.reassigning and found.replicas == replicas and set(found.isr) == set(replicas)


def test_a_move_ends_though_the_leader_hears_of_it_after_the_follower_has_asked(cluster):
    create(cluster.bootstrap, "moves", [1])
    produce(cluster.bootstrap, "moves", b"x")
    with unaware(cluster[1]):
        reassign(cluster, "moves", [2])
        until(
            lambda: rests(cluster[2], 1, "moves") or log_end_offset(cluster[2], "moves") == 1, "2 has asked"
        )
    until(lambda: settled_on(cluster, "moves", 2), "the move is done")
    assert log_end_offset(cluster[2], "moves") == 1


def test_a_move_ends_though_the_follower_hears_of_it_after_the_leader(cluster):
    create(cluster.bootstrap, "moves", [1])
    produce(cluster.bootstrap, "moves", b"x")
    with unaware(cluster[2]):
        reassign(cluster, "moves", [2])
        until(
            lambda: look(cluster[1], lambda node: node.replicas.image.partition("moves", 0).reassigning),
            "1 knows",
        )
    until(lambda: settled_on(cluster, "moves", 2), "the move is done")


@pytest.mark.parametrize("late", [1, 2])
@pytest.mark.parametrize("coalesce", [False, True])
def test_a_replica_that_is_dropped_and_added_again_unnoticed_by_one_side_is_in_sync_in_the_end(
    cluster, late, coalesce
):
    create(cluster.bootstrap, "back", [1, 2])
    produce(cluster.bootstrap, "back", b"x")
    with unaware(cluster[late], coalesce=coalesce):
        reassign(cluster, "back", [1])
        until(lambda: settled_on(cluster, "back", 1), "2 is dropped")
        reassign(cluster, "back", [1, 2])
        until(lambda: 2 in state(cluster, "back").adding, "2 is added")
    until(lambda: settled_on(cluster, "back", 1, 2), "2 is in sync again")
    produce(cluster.bootstrap, "back", b"y")
    until(lambda: log_end_offset(cluster[2], "back") == 2, "2 follows")


@pytest.mark.parametrize("late", [1, 2])
def test_a_topic_deleted_and_made_again_unnoticed_by_one_side_is_replicated(cluster, late):
    create(cluster.bootstrap, "again", [1, 2])
    produce(cluster.bootstrap, "again", b"old", b"older")
    with unaware(cluster[late], coalesce=True):
        delete(cluster[3].bootstrap, "again")
        create(cluster[3].bootstrap, "again", [1, 2])
        until(
            lambda: look(cluster[3 - late], lambda node: end_of_id(node, "again")) == 0,
            "the other has made it",
        )
    produce(cluster.bootstrap, "again", b"new")
    until(
        lambda: log_end_offset(cluster[1], "again") == log_end_offset(cluster[2], "again") == 1,
        "both have the new record only",
    )
    until(lambda: settled_on(cluster, "again", 1, 2), "both are in sync")


def end_of_id(node, topic):
    """The end of the log of the topic as the image has it now; None while what is held is another's."""
    log = node.logs.get(topic, 0)
    known = node.cluster.image.topics.get(topic)
    return log.log_end_offset if log is not None and known is not None and log.topic_id == known.id else None


def test_a_leader_that_has_not_heard_of_its_election_is_followed_once_it_has(cluster):
    create(cluster.bootstrap, "elected", [1, 2, 3])
    produce(cluster.bootstrap, "elected", b"x")
    with unaware(cluster[2]):
        cluster[1].kill()
        until(lambda: state(cluster, "elected").leader == 2, "2 is elected")
        until(lambda: rests(cluster[3], 2, "elected"), "3 has asked 2")
    produce(cluster.bootstrap, "elected", b"y")
    until(lambda: log_end_offset(cluster[3], "elected") == 2, "3 follows 2")
    cluster[1].start()
    until(lambda: set(state(cluster, "elected").isr) == {1, 2, 3}, "1 is back")


def test_a_follower_that_registers_anew_before_its_leader_hears_of_it_is_in_sync_in_the_end(cluster):
    create(cluster.bootstrap, "anew", [1, 2, 3])
    produce(cluster.bootstrap, "anew", b"x")

    async def lose_session(node):
        epoch = node.cluster.broker_epoch
        node.cluster._store._writer.transport.abort()
        return epoch

    with unaware(cluster[1]):
        before = cluster[2].run(lose_session)
        until(
            lambda: look(cluster[3], lambda node: node.cluster.image.brokers[2].epoch) > before, "2 is back"
        )
        until(lambda: look(cluster[3], lambda node: node.cluster.image.active(2)), "2 is alive")
        assert 2 not in state(cluster, "anew").isr
    until(lambda: set(state(cluster, "anew").isr) == {1, 2, 3}, "2 is in sync again")

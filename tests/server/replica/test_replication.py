"""Three brokers, one log: followers copy it, the high watermark waits for them, another takes over when one goes."""

import pytest

from headrace.testing import cluster as testing
from tests.server.clients import create, partition_of, produce, try_to_produce, values
from tests.server.replica.logs import log_bytes
from tests.waiting import until


@pytest.fixture
def cluster(tmp_path):
    running = testing.threads(tmp_path, 3, {"replica.lag.time.max.ms": "2000"})
    yield running
    running.stop()


def logs(cluster, topic):
    return {log_bytes(broker, topic) for broker in cluster}


def test_every_replica_holds_the_same_bytes(cluster):
    create(cluster.bootstrap, "same", 3)
    expected = [b"%d" % n for n in range(2000)]
    produce(cluster.bootstrap, "same", *expected)
    assert values(cluster.bootstrap, "same") == expected
    until(lambda: len(logs(cluster, "same")) == 1)
    until(lambda: set(partition_of(cluster.bootstrap, "same").isrs) == {1, 2, 3})


def test_another_broker_leads_when_one_stops_and_the_returning_one_catches_up(cluster):
    create(cluster.bootstrap, "moving", 3, config={"min.insync.replicas": "2"})
    produce(cluster.bootstrap, "moving", *(b"before %d" % n for n in range(500)))
    first = partition_of(cluster.bootstrap, "moving").leader
    cluster[first].stop()
    until(lambda: partition_of(cluster.bootstrap, "moving").leader not in (first, -1))
    produce(cluster.bootstrap, "moving", *(b"after %d" % n for n in range(500)))
    expected = [b"before %d" % n for n in range(500)] + [b"after %d" % n for n in range(500)]
    assert values(cluster.bootstrap, "moving") == expected
    cluster[first].start()
    until(lambda: set(partition_of(cluster.bootstrap, "moving").isrs) == {1, 2, 3})
    until(lambda: len(logs(cluster, "moving")) == 1)


def test_with_one_replica_left_acks_all_is_refused_when_two_must_be_in_sync(cluster):
    create(cluster.bootstrap, "strict", 3, config={"min.insync.replicas": "2"})
    produce(cluster.bootstrap, "strict", b"x")
    last = partition_of(cluster.bootstrap, "strict").leader
    for number in {1, 2, 3} - {last}:
        cluster[number].stop()
    until(lambda: partition_of(cluster.bootstrap, "strict").isrs == [last])
    refused = try_to_produce(cluster[last].bootstrap, "strict", b"y", **{"message.timeout.ms": 3000})
    assert len(refused) == 1
    assert values(cluster.bootstrap, "strict") == [b"x"]


def test_a_follower_that_lost_its_session_returns_to_the_isr_of_a_quiet_partition(cluster):
    create(cluster.bootstrap, "quiet", 3)
    produce(cluster.bootstrap, "quiet", b"x")
    first = partition_of(cluster.bootstrap, "quiet").leader
    follower = next(number for number in (1, 2, 3) if number != first)

    async def lose_session(node):
        epoch = node.cluster.broker_epoch
        node.cluster._store._writer.transport.abort()
        return epoch

    async def epoch_of(node):
        return node.cluster.broker_epoch

    before = cluster[follower].run(lose_session)
    until(lambda: cluster[follower].run(epoch_of) != before)
    until(lambda: set(partition_of(cluster.bootstrap, "quiet").isrs) == {1, 2, 3})

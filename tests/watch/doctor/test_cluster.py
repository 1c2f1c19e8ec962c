"""A cluster of three with its faults: brokers down, replicas missing, leaders and replicas unevenly spread."""

import pytest

from headrace.link.opening import Offer
from headrace.testing.cluster import threads
from headrace.watch.doctor.scene import Bounds
from headrace.watch.doctor.versions import differing
from tests.waiting import until
from tests.watch.doctor.looking import findings


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    settings = {
        "leader.imbalance.check.interval.seconds": "3600",
        "offsets.topic.num.partitions": "3",
        "auto.leader.rebalance.enable": "false",
    }
    with threads(tmp_path_factory.mktemp("cluster"), settings=settings) as running:
        yield running


@pytest.fixture
def make_topic(cluster):
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    made = []

    def make(name, assignment, config=None):
        topic = NewTopic(name, len(assignment), replica_assignment=assignment, config=config or {})
        admin.create_topics([topic])[name].result(30)
        made.append(name)
        return name

    yield make
    if made:
        for future in admin.delete_topics(made).values():
            future.result(30)


def test_a_healthy_cluster_is_fine(cluster, make_topic):
    make_topic("even", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"})
    for name in (
        "brokers",
        "replication",
        "leader-balance",
        "replica-balance",
        "single-replica",
        "min-insync-replicas",
        "broker-versions",
        "disk-balance",
        "other-machines",
    ):
        assert findings(name, cluster.bootstrap) == [], name


def test_topics_that_do_not_survive_a_broker_are_named(cluster, make_topic):
    make_topic("alone", [[1]])
    make_topic("brittle", [[1, 2]], {"min.insync.replicas": "2"})
    make_topic("impossible", [[1, 2]], {"min.insync.replicas": "3"})
    make_topic("weak", [[1, 2, 3]])
    [(severity, sentence, subjects)] = findings("single-replica", cluster.bootstrap)
    assert (severity, subjects) == ("warning", ("alone",))
    assert sentence.startswith("1 topic of one replica in a cluster of 3 brokers: alone")
    found = findings("min-insync-replicas", cluster.bootstrap)
    assert [(severity, subjects) for severity, _, subjects in found] == [
        ("error", ("impossible",)),
        ("warning", ("brittle",)),
        ("note", ("weak",)),
    ]


def test_uneven_leaders_and_replicas_are_found(cluster, make_topic):
    make_topic("heap", [[1, 2]] * 6)
    [(severity, sentence, subjects)] = findings("leader-balance", cluster.bootstrap)
    assert (severity, subjects[0]) == ("warning", "1")
    assert "preferred leader of 6 partitions" in sentence
    [(severity, sentence, subjects)] = findings("replica-balance", cluster.bootstrap)
    assert (severity, subjects) == ("warning", ("1", "3"))


def test_a_disk_that_holds_more_than_its_share_is_found(cluster, make_topic):
    from confluent_kafka import Producer

    make_topic("large", [[2]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce("large", b"x" * 500_000)
    assert producer.flush(60) == 0
    assert findings("disk-balance", cluster.bootstrap) == [], "too little to matter"
    found = findings("disk-balance", cluster.bootstrap, bounds=Bounds(uneven_bytes=10_000))
    [(severity, sentence, subjects)] = found
    assert (severity, subjects[0]) == ("warning", "2")
    assert "the largest topic on broker 2 is large" in sentence


def test_a_broker_that_is_down_is_found_with_all_that_it_takes_along(cluster, make_topic):
    make_topic("pair", [[2, 1], [3, 2]])
    make_topic("strict", [[2, 1]], {"min.insync.replicas": "2"})
    make_topic("lone", [[2]])
    cluster[2].stop()
    try:
        until(lambda: findings("brokers", cluster.bootstrap), "broker 2 is down")
        assert findings("brokers", cluster.bootstrap) == [("error", "Broker 2 is down.", ("2",))]
        until(lambda: len(findings("replication", cluster.bootstrap)) == 3, "all three consequences")
        offline, under, behind = findings("replication", cluster.bootstrap)
        assert (offline[0], offline[2]) == ("error", ("lone-0",))
        assert (under[0], under[2]) == ("error", ("strict-0",))
        assert (behind[0], set(behind[2])) == ("warning", {"pair-0", "pair-1"})
    finally:
        cluster[2].start()
    until(lambda: findings("replication", cluster.bootstrap) == [], "all in sync again")
    [(severity, sentence, subjects)] = findings("leader-balance", cluster.bootstrap)
    assert (severity, set(subjects)) == ("warning", {"pair-0", "strict-0"})
    assert "led by another broker than the preferred one: broker 2" in sentence


def test_feature_levels_left_behind_are_noted(cluster):
    from headrace.client.administration import features
    from tests.watch.doctor.looking import scene_of

    scene = scene_of(cluster.bootstrap)
    features.update(scene.session, {"transaction.version": 1}, features.SAFE_DOWNGRADE)
    scene.watching.close()
    [(severity, sentence, subjects)] = findings("feature-levels", cluster.bootstrap)
    assert severity == "note"
    assert "transaction.version" in subjects
    assert "transaction.version is 1 of 2" in sentence


def test_brokers_of_different_versions_are_told_by_what_they_serve(cluster):
    from headrace.link.settings import KafkaSettings
    from headrace.watch.doctor.contacts import contact

    reached = contact(KafkaSettings.of({"bootstrap.servers": cluster.bootstrap}, "a test")).reached
    offers = {each.broker: each.offer for each in reached}
    assert list(differing(offers)) == []
    older = dict(offers[3].versions)
    older.popitem()
    [found] = differing({**offers, 3: Offer(offers[3].address, older)})
    assert (found.severity.value, found.subjects) == ("warning", ("3",))

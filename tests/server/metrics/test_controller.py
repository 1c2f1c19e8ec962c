"""What the controller's series say while it changes, and while its store is away."""

import pytest
from confluent_kafka import Producer

from headrace.client import Admin
from headrace.testing import cluster as testing
from tests.server.clients import create, partition_of
from tests.server.metrics.scraping import METRICS, Samples
from tests.waiting import until

ELECTIONS = "kafka_controller_controllerstats_uncleanleaderelections_total"
CONTROLLERS = "kafka_controller_kafkacontroller_activecontrollercount"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    settings = {**METRICS, "replica.lag.time.max.ms": 2000}
    with testing.threads(tmp_path_factory.mktemp("brokers"), 3, settings) as running:
        yield running


def of_each(cluster, name, brokers=(1, 2, 3)):
    return {number: Samples(cluster[number]).one(name) for number in brokers}


def controller(cluster, brokers=(1, 2, 3)):
    return [number for number, count in of_each(cluster, CONTROLLERS, brokers).items() if count == 1]


def produce(cluster, topic):
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(topic, b"x")
    assert producer.flush(60) == 0


def test_an_unclean_election_is_counted_by_the_controller_alone_and_by_no_later_one(cluster):
    [first] = controller(cluster)
    behind, ahead = (number for number in (1, 2, 3) if number != first)
    create(cluster.bootstrap, "guesses", [ahead, behind])
    produce(cluster, "guesses")
    cluster[behind].kill()
    until(lambda: partition_of(cluster[first].bootstrap, "guesses").isrs == [ahead], "one is in sync")
    produce(cluster, "guesses")
    cluster[ahead].kill()
    until(lambda: partition_of(cluster[first].bootstrap, "guesses").leader == -1, "nobody leads")
    cluster[behind].start()
    with Admin(cluster.bootstrap) as admin:
        admin.set_topic_config("guesses", {"unclean.leader.election.enable": "true"})
    until(lambda: partition_of(cluster[first].bootstrap, "guesses").leader == behind, "an unclean leader")
    until(lambda: of_each(cluster, ELECTIONS, (first, behind)) == {first: 1, behind: 0}, "it is counted once")
    cluster[first].kill()
    until(lambda: controller(cluster, (behind,)), "another controller")
    assert of_each(cluster, ELECTIONS, (behind,)) == {behind: 0}
    cluster[first].start()
    cluster[ahead].start()


def test_nobody_says_to_be_the_controller_while_the_store_is_away(cluster):
    until(lambda: len(controller(cluster)) == 1, "one controller")
    cluster.store.halt()
    until(lambda: controller(cluster) == [], "no controller")
    cluster.store.start()
    until(lambda: len(controller(cluster)) == 1, "one controller")

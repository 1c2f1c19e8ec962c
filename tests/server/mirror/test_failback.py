"""Back again: the cluster that failed follows the one that took over, from where both agree."""

import pytest

from headrace.client.administration import mirrors
from headrace.testing.cluster import threads
from tests.server.mirror.dc import Site, produce, segments
from tests.waiting import until


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    with threads(tmp_path_factory.mktemp("first"), 2, {"default.replication.factor": 2}) as cluster:
        Site(cluster.bootstrap).allow_links()
        yield cluster


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    with threads(tmp_path_factory.mktemp("second"), 1) as cluster:
        Site(cluster.bootstrap).allow_links()
        yield cluster


@pytest.fixture
def moved(first, second):
    """A topic that was mirrored from the first cluster to the second, failed over, and written on there."""
    topic = first.create_topic(partitions=1)
    write(first, topic, b"0", b"1", b"2")
    site = Site(second.bootstrap).link(first.bootstrap, topics=[topic], name=topic)
    until(lambda: copied(site, topic, 3), "the copy")
    site.call(mirrors.fail_over, topic)
    until(lambda: site.topic(topic, topic).state == "failed over", "the failover")
    return topic


def copied(site, topic, end):
    found = site.topic(topic, topic)
    return found is not None and [each.end_offset for each in found.positions] == [end]


def write(cluster, topic, *values):
    """To whichever broker leads; one that has just begun to lead may not know it yet."""
    until(
        lambda: any(produce(broker.bootstrap, topic, *values).error_code == 0 for broker in cluster),
        "a broker that takes it",
    )


def equal(topic, *clusters):
    logs = {segments(broker.data, topic) for cluster in clusters for broker in cluster}
    return len(logs) == 1


def test_only_what_differs_is_copied_and_the_first_cluster_leads_on(first, second, moved):
    write(second, moved, b"3", b"4")
    site = Site(first.bootstrap).link(second.bootstrap, topics=[moved], name=moved, adopts=True)
    until(lambda: copied(site, moved, 5), "the copy back")
    assert site.topic(moved, moved).positions[0].agreed
    until(lambda: equal(moved, first, second), "equal logs")
    site.call(mirrors.fail_over, moved)
    until(lambda: site.topic(moved, moved).state == "failed over", "the failover")
    write(first, moved, b"5")


def test_what_only_the_first_cluster_has_is_not_overwritten_unless_it_is_given_up(first, second, moved):
    write(first, moved, b"lost", b"lost too")
    write(second, moved, b"3", b"4", b"5")
    site = Site(first.bootstrap).link(second.bootstrap, topics=[moved], name=moved, adopts=True)
    until(lambda: (found := site.topic(moved, moved)) and found.state == "failed", "the refusal")
    assert "from offset 3 on: 2 of them are only here" in site.topic(moved, moved).reason
    assert site.call(mirrors.resume, moved, [moved]) == [moved]
    until(lambda: site.topic(moved, moved).state == "failed", "the refusal again")
    site.call(mirrors.resume, moved, [moved], True)
    until(lambda: copied(site, moved, 6) and site.topic(moved, moved).state == "mirroring", "the copy back")
    until(lambda: equal(moved, first, second), "equal logs")
    write(second, moved, b"6")
    until(lambda: copied(site, moved, 7), "the next record")


def test_a_link_that_does_not_adopt_leaves_topics_alone(first, second, moved):
    site = Site(first.bootstrap).link(second.bootstrap, topics=[moved], name=moved)

    def obstacles():
        return next(each.obstacles for each in site.call(mirrors.describe) if each.name == moved)

    until(lambda: moved in obstacles(), "the report")
    write(first, moved, b"mine")

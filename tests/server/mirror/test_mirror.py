"""A mirror: the same bytes at the same offsets, read-only until it is failed over."""

import pytest

from headrace.cli.failure import Failure
from headrace.client.administration import mirrors
from headrace.testing.broker import BrokerThread
from headrace.wire.errors import ErrorCode
from tests.server.mirror.dc import Site, produce, segments


@pytest.fixture
def source(tmp_path):
    with BrokerThread(tmp_path / "source") as broker:
        yield broker


@pytest.fixture
def target(tmp_path):
    with BrokerThread(tmp_path / "target") as broker:
        yield broker


@pytest.fixture
def site(target):
    return Site(target.bootstrap).allow_links()


def test_a_mirrored_partition_is_the_sources_byte_for_byte(source, target, site):
    topic = source.create_topic(partitions=2)
    for number in range(5):
        produce(source.bootstrap, topic, b"a%d" % number, b"b")
    produce(source.bootstrap, topic, b"other", partition=1)
    site.link(source.bootstrap)
    site.await_copy(topic, {0: 10, 1: 1})
    produce(source.bootstrap, topic, b"later")
    site.await_copy(topic, {0: 11, 1: 1})
    for partition in range(2):
        assert segments(target.data, topic, partition) == segments(source.data, topic, partition)


def test_a_mirror_takes_no_writes_until_it_is_failed_over(source, target, site):
    topic = source.create_topic()
    produce(source.bootstrap, topic, b"v")
    site.link(source.bootstrap)
    site.await_copy(topic, {0: 1})
    refused = produce(target.bootstrap, topic, b"no")
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "read-only mirror topic" in refused.error_message
    assert site.call(mirrors.fail_over, "dc") == [topic]
    site.await_state(topic, "failed over")
    written = produce(target.bootstrap, topic, b"yes")
    assert (written.error_code, written.base_offset) == (0, 1)
    (end,) = site.topic(topic).ends
    assert (end.last_offset, end.lost_records) == (0, 0)
    assert end.lost_seconds < 60


def test_a_link_needs_its_feature(source, target):
    with pytest.raises(Failure, match=r"headrace features set mirror\.version=1"):
        Site(target.bootstrap).link(source.bootstrap)

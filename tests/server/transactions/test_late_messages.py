"""KIP-890, byte by byte: a message or an end that arrives late never lands in the next transaction."""

import asyncio
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.topics import create_topic
from headrace.testing.wire import WireClient, batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.wire.records import BatchBuilder
from tests.server.requests import produce_request, produced
from tests.waiting import until


@pytest.fixture
def client(bootstrap, topic):
    with WireClient(bootstrap) as client:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[topic])
        until(lambda: client.call(request, 4).coordinators[0].error_code == 0)
        yield client


def init(client, name):
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60000)
    reply = client.call(request, 5)
    deadline = time.monotonic() + 30
    while reply.error_code in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        assert time.monotonic() < deadline
        time.sleep(0.01)
        reply = client.call(request, 5)
    assert reply.error_code == 0
    return reply.producer_id, reply.producer_epoch


def produce(client, topic, producer, sequence, version):
    producer_id, epoch = producer
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True
    )
    request = produce_request(topic, batch(b"v", builder=builder), transactional_id=topic)
    code = produced(client, request, version)
    deadline = time.monotonic() + 30
    while code is ErrorCode.CONCURRENT_TRANSACTIONS:
        assert time.monotonic() < deadline
        time.sleep(0.01)
        code = produced(client, request, version)
    return code


def end(client, topic, producer, commit, version):
    """Asks until the coordinator is no longer busy with the last transaction."""
    request = EndTxnRequest(topic, *producer, commit)
    reply = client.call(request, version)
    deadline = time.monotonic() + 30
    while reply.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
        assert time.monotonic() < deadline
        time.sleep(0.01)
        reply = client.call(request, version)
    return ErrorCode(reply.error_code), (reply.producer_id, reply.producer_epoch)


def stable_and_end(client, topic):
    def offset(isolation):
        asked = ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, -1)])
        reply = client.call(ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[asked]), 5)
        return reply.topics[0].partitions[0].offset

    return offset(1), offset(0)


class TestVersion2:
    """The client writes without naming its partitions, and every transaction has an epoch of its own."""

    def test_the_epoch_grows_with_every_transaction(self, client, topic):
        producer = init(client, topic)
        for expected in (1, 2, 3):
            assert produce(client, topic, producer, 0, 12) is ErrorCode.NONE
            code, producer = end(client, topic, producer, True, 5)
            assert (code, producer[1]) == (ErrorCode.NONE, expected)

    def test_a_late_produce_is_refused_and_leaves_nothing_open(self, client, topic):
        old = init(client, topic)
        assert produce(client, topic, old, 0, 12) is ErrorCode.NONE
        _, new = end(client, topic, old, True, 5)
        until(lambda: stable_and_end(client, topic) == (2, 2))
        assert produce(client, topic, old, 1, 12) in (
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.TRANSACTION_ABORTABLE,
        )
        assert produce(client, topic, new, 0, 12) is ErrorCode.NONE
        assert produce(client, topic, old, 1, 12) is ErrorCode.INVALID_PRODUCER_EPOCH
        end(client, topic, new, True, 5)
        until(lambda: stable_and_end(client, topic) == (4, 4))

    def test_a_write_that_comes_before_the_last_markers_begins_anew_when_they_are_there(
        self, broker, client, topic
    ):
        coordinator = broker.node.transactions.coordinator
        send, held = coordinator._ending._send_markers, threading.Event()

        async def hold(transaction, epoch):
            while not held.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await send(transaction, epoch)

        producer = init(client, topic)
        assert produce(client, topic, producer, 0, 12) is ErrorCode.NONE
        coordinator._ending._send_markers = hold
        try:
            code, producer = end(client, topic, producer, True, 5)
            assert code is ErrorCode.NONE
            threading.Timer(0.03, held.set).start()
            assert produce(client, topic, producer, 0, 12) is ErrorCode.NONE
        finally:
            held.set()
            coordinator._ending._send_markers = send
        assert end(client, topic, producer, True, 5)[0] is ErrorCode.NONE
        until(lambda: stable_and_end(client, topic) == (4, 4))

    def test_a_late_end_does_not_end_the_next_transaction(self, client, topic):
        old = init(client, topic)
        assert produce(client, topic, old, 0, 12) is ErrorCode.NONE
        _, new = end(client, topic, old, True, 5)
        until(lambda: stable_and_end(client, topic) == (2, 2))
        assert produce(client, topic, new, 0, 12) is ErrorCode.NONE
        code, _ = end(client, topic, old, False, 5)
        assert code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        assert stable_and_end(client, topic) == (2, 3)

    def test_an_end_whose_answer_was_lost_is_answered_again(self, client, topic):
        old = init(client, topic)
        assert produce(client, topic, old, 0, 12) is ErrorCode.NONE
        first = end(client, topic, old, True, 5)
        again = end(client, topic, old, True, 5)
        assert again == first


def test_a_late_marker_of_the_transaction_before_does_not_end_the_one_that_is_open(client, topic):
    producer_id, epoch = init(client, topic)

    def mark(epoch, version, transaction_version):
        marker = WritableTxnMarker(
            producer_id,
            epoch,
            True,
            [WritableTxnMarkerTopic(topic, [0])],
            100,
            transaction_version,
        )
        reply = client.call(WriteTxnMarkersRequest([marker]), version)
        return ErrorCode(reply.markers[0].topics[0].partitions[0].error_code)

    assert produce(client, topic, (producer_id, epoch), 0, 12) is ErrorCode.NONE
    assert mark(epoch, 2, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert stable_and_end(client, topic) == (0, 1)
    assert mark(epoch + 1, 2, 2) is ErrorCode.NONE
    assert mark(epoch + 1, 2, 2) is ErrorCode.NONE, "sent again"
    assert stable_and_end(client, topic) == (3, 3)
    # Before, every marker of the epoch ended the transaction.
    assert produce(client, topic, (producer_id, epoch + 1), 0, 12) is not ErrorCode.NONE


@pytest.mark.sources("MarkerWriter.write")
def test_the_coordinator_says_which_version_a_transaction_has(make_broker):
    broker = make_broker()
    written = []

    async def watch(node):
        plain = node.transactions.markers.write

        async def write(*arguments):
            written.append(arguments[-1])
            return await plain(*arguments)

        node.transactions.markers.write = write

    create_topic(broker.bootstrap, "t")
    broker.run(watch)
    with WireClient(broker.bootstrap) as client:
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
        until(lambda: client.call(find, 4).coordinators[0].error_code == 0)
        for version in (2, 1):
            producer = init(client, "t")
            if version == 1:
                client.call(AddPartitionsToTxnRequest("t", *producer, [AddPartitionsToTxnTopic("t", [0])]), 3)
            assert produce(client, "t", producer, 0, 12 if version == 2 else 11) is ErrorCode.NONE
            assert end(client, "t", producer, True, 5 if version == 2 else 4)[0] is ErrorCode.NONE
    until(lambda: len(written) == 2)
    assert written == [2, 0]


class TestVersion1:
    """The client names its partitions; a write to a partition it has not named is no part of its transaction."""

    def test_a_produce_without_a_transaction_is_refused(self, client, topic):
        producer = init(client, topic)
        assert produce(client, topic, producer, 0, 11) in (
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.INVALID_TXN_STATE,
        )
        add = AddPartitionsToTxnRequest(topic, *producer, [AddPartitionsToTxnTopic(topic, [0])])
        added = client.call(add, 3).results_by_topic_v3_and_below[0].results_by_partition[0]
        assert added.partition_error_code == 0
        assert produce(client, topic, producer, 0, 11) is ErrorCode.NONE
        assert end(client, topic, producer, True, 4)[0] is ErrorCode.NONE

    def test_a_produce_after_the_end_is_refused(self, client, topic):
        producer = init(client, topic)
        add = AddPartitionsToTxnRequest(topic, *producer, [AddPartitionsToTxnTopic(topic, [0])])
        client.call(add, 3)
        assert produce(client, topic, producer, 0, 11) is ErrorCode.NONE
        assert end(client, topic, producer, False, 4)[0] is ErrorCode.NONE
        until(lambda: stable_and_end(client, topic) == (2, 2))
        assert produce(client, topic, producer, 1, 11) is not ErrorCode.NONE
        assert stable_and_end(client, topic) == (2, 2)


def test_a_transaction_that_stays_open_too_long_is_aborted(broker, client, topic):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(f"{topic}-slow", 1)])[f"{topic}-slow"].result(30)
    request = InitProducerIdRequest(transactional_id=topic, transaction_timeout_ms=1)
    reply = client.call(request, 5)
    producer = (reply.producer_id, reply.producer_epoch)
    assert produce(client, topic, producer, 0, 12) is ErrorCode.NONE
    time.sleep(0.01)
    broker.run(lambda node: node.transactions.coordinator.abort_overdue())
    until(lambda: stable_and_end(client, topic) == (2, 2))
    assert end(client, topic, producer, True, 5)[0] is not ErrorCode.NONE


def test_a_producer_whose_transaction_grew_too_old_starts_again_with_the_epoch_that_ended_it(
    broker, client, topic
):
    request = InitProducerIdRequest(transactional_id=topic, transaction_timeout_ms=1)
    reply = client.call(request, 5)
    producer_id, epoch = reply.producer_id, reply.producer_epoch
    assert produce(client, topic, (producer_id, epoch), 0, 12) is ErrorCode.NONE
    time.sleep(0.01)
    broker.run(lambda node: node.transactions.coordinator.abort_overdue())
    until(lambda: stable_and_end(client, topic) == (2, 2))
    request = InitProducerIdRequest(topic, 60_000, producer_id, epoch)
    again = client.call(request, 5)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, producer_id, epoch + 1)
    assert produce(client, topic, (producer_id, epoch + 1), 0, 12) is ErrorCode.NONE

"""The requests that several tests send, and the error codes in a response."""

from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import fetch as fe
from headrace.wire.messages import offset_commit as oc
from headrace.wire.messages import txn_offset_commit as toc
from headrace.wire.messages import write_txn_markers as wtm
from headrace.wire.schema import Message
from tests.server.requests import produce_request


def codes(message):
    """Every error code in a response, however deep."""
    found = set()
    for name in message.__slots__:
        value = getattr(message, name)
        if name.endswith("error_code"):
            found.add(ErrorCode(value))
        elif isinstance(value, Message):
            found |= codes(value)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Message):
                    found |= codes(each)
    return found


def produce_to(topic, transactional_id=None):
    return produce_request(topic, batch(b"v"), timeout_ms=1000, transactional_id=transactional_id)


def fetch_of(topic, replica_id=-1):
    return fe.FetchRequest(
        replica_id=replica_id,
        max_wait_ms=0,
        topics=[fe.FetchTopic(topic, partitions=[fe.FetchPartition(0, partition_max_bytes=1000)])],
    )


def commit_of(topic, group="g"):
    return oc.OffsetCommitRequest(
        group, topics=[oc.OffsetCommitRequestTopic(topic, [oc.OffsetCommitRequestPartition(0, 1)])]
    )


def transactional_commit(topic):
    partitions = [toc.TxnOffsetCommitRequestPartition(0, 1)]
    topics = [toc.TxnOffsetCommitRequestTopic(topic, partitions)]
    return toc.TxnOffsetCommitRequest("tx", "g", topics=topics)


def marker(topic):
    return wtm.WriteTxnMarkersRequest(
        [wtm.WritableTxnMarker(1, 0, False, [wtm.WritableTxnMarkerTopic(topic, [0])])]
    )

"""Records that a group has yet to read, as they lie in a partition: their keys, and the batches that hold them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from headrace.client.administration import topics
from headrace.client.administration.errors import check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.link.errors import BrokerUnavailable
from headrace.wire.batch import iterate_batches
from headrace.wire.errors import KafkaError
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.records import Record, decode_records

_BYTES = 1 << 20
_BY_NAME = 12
"""The last version that names topics; later ones want their ids."""
_WAIT_MS = 500


@dataclass(frozen=True, slots=True)
class Sample:
    records: tuple[Record, ...] = ()
    batches: int = 0
    size: int = 0
    """Bytes of the batches."""

    @property
    def first(self) -> Record | None:
        return self.records[0] if self.records else None

    @property
    def records_per_batch(self) -> float:
        return len(self.records) / self.batches if self.batches else 0.0

    @property
    def commonest_key(self) -> tuple[bytes, float] | None:
        """The key that most of the keyed records have, and which part of all records has it."""
        keys = Counter(each.key for each in self.records if each.key is not None)
        for key, count in keys.most_common(1):
            return key, count / len(self.records)
        return None


def sample(session: Session, partition: Partition, offset: int) -> Sample:
    """Up to a mebibyte of records from an offset on; fewer when the partition ends, none when it cannot be read."""
    leader = next((each.leader for each in topics.partition_states(session, [partition])), None)
    if leader is None:
        return Sample()
    name, index = partition
    request = FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=_BYTES,
        topics=[
            FetchTopic(
                name, partitions=[FetchPartition(index, fetch_offset=offset, partition_max_bytes=_BYTES)]
            )
        ],
    )
    try:
        with session.connect(leader) as connection:
            version = min(_BY_NAME, connection.offer.version_of(FetchRequest))
            found = connection.call(request, version).responses[0].partitions[0]
            check(found.error_code)
            data = bytes(found.records or b"")
    except (BrokerUnavailable, BrokerError, KafkaError):
        return Sample()  # the leader is gone, or this user may not read: advice is given without
    return _read(data, offset)


def _read(data: bytes, offset: int) -> Sample:
    records: list[Record] = []
    batches = size = 0
    try:
        for position, header in iterate_batches(data):
            if header.is_control:
                continue
            batches, size = batches + 1, size + header.size
            found = decode_records(memoryview(data)[position : position + header.size], header)
            records += [each for each in found if each.offset >= offset]
    except KafkaError:
        pass  # a batch that cannot be read ends the sample: what lies before it counts
    return Sample(tuple(records), batches, size)

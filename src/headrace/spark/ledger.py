"""The ledger: which transactions make up a batch of a streaming query, in a compacted topic of the sink's cluster.

A driver records the list of a batch before it commits the first transaction of it. A run that finds a recorded list
finishes it; the batch is never written again. Each run of a query keeps its newest record under a key of its own, so no
record of one run can compact away what another has decided; between two runs that record the same batch (a driver
that was thought dead), the one that came first in the log has won.
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headrace.link.cluster import Cluster
from headrace.spark.fetch import Fetcher, FetchSettings
from headrace.spark.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from headrace.spark.sink_options import WriteOptions
from headrace.spark.sink_producer import SinkProducer
from headrace.spark.sink_records import Draft
from headrace.spark.sink_transactions import ProducerIdentity
from headrace.wire.batch import HEADER_SIZE
from headrace.wire.compression import Codec
from headrace.wire.errors import RETRIABLE, ErrorCode, KafkaError
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.records import BatchBuilder, decode_records

TOPIC = "__headrace_spark_ledger"

_PARTITIONS = 8
_CONFIG = {
    "cleanup.policy": "compact",
    # A new run reads its partition from the start: small segments are compacted soon.
    "segment.bytes": str(1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """What one run of a query has recorded last."""

    query: str
    run: str
    batch: int
    transactions: tuple[ProducerIdentity, ...]
    finished: bool = False
    """All of its transactions are committed."""
    replaces: int = -1
    """The offset of a record of the same batch whose transactions were all found aborted."""
    recorded: int = -1
    """The offset at which the list was first written; a later record of the same entry keeps it."""

    def encode(self) -> bytes:
        content = {
            "format": _FORMAT,
            "query": self.query,
            "run": self.run,
            "batch": self.batch,
            "state": "finished" if self.finished else "recorded",
            "replaces": self.replaces,
            "recorded": self.recorded,
            "transactions": [
                [identity.transactional_id, identity.producer_id, identity.epoch]
                for identity in self.transactions
            ],
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes, offset: int) -> Entry:
        content = json.loads(data)
        if content.get("format") != _FORMAT:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The topic {TOPIC} holds a record of a newer Headrace; update this one before it goes on.",
            )
        return cls(
            content["query"],
            content["run"],
            content["batch"],
            tuple(ProducerIdentity(*identity) for identity in content["transactions"]),
            content["state"] == "finished",
            content["replaces"],
            offset if content["recorded"] < 0 else content["recorded"],
        )


def decided(entries: Mapping[str, Entry]) -> Entry | None:
    """What holds for the newest batch that any run has recorded: the first list, or what rightly replaced it."""
    if not entries:
        return None
    newest = max(entry.batch for entry in entries.values())
    candidates = sorted(
        (entry for entry in entries.values() if entry.batch == newest),
        key=lambda entry: (entry.recorded, not entry.finished),
    )
    known = {entry.recorded for entry in candidates}
    winner = next((entry for entry in candidates if entry.replaces not in known), candidates[0])
    for entry in candidates:
        if entry.replaces == winner.recorded:
            winner = entry
    return winner


@dataclass(slots=True)
class View:
    """A query's part of the ledger, read up to `end`."""

    topic_id: uuid.UUID
    entries: dict[str, Entry]
    """The last entry of each run."""
    end: int


_views: dict[tuple[Cluster, str], View] = {}
"""What this process has read; Spark's workers live on, so that a driver reads only what is new."""


class Ledger:
    def __init__(self, cluster: Cluster, query: str) -> None:
        self._cluster = cluster
        self._query = query
        self._options = WriteOptions(cluster.settings, ("key", "value"), TOPIC)
        self._topic_id, self._partition = self._place()

    def read(self) -> View:
        """All that was recorded for the query until now."""
        partition = self._partition
        known = _views.get((self._cluster, self._query))
        end = list_offsets(self._cluster, {partition: LATEST})[partition]
        if known is None or known.topic_id != self._topic_id or known.end > end:
            start = list_offsets(self._cluster, {partition: EARLIEST})[partition]
            known = View(self._topic_id, {}, start)
        self._read_on(known, end)
        _views[self._cluster, self._query] = known
        return known

    def read_on(self, view: View) -> None:
        """Add what was recorded since the view was read."""
        self._read_on(view, list_offsets(self._cluster, {self._partition: LATEST})[self._partition])

    def append(self, entry: Entry, view: View) -> Entry:
        """Record an entry and read on to it; the entry as it stands in the ledger."""
        offset = self._produce([(entry.run, entry.encode())])
        if offset == view.end:
            recorded = replace(entry, recorded=offset if entry.recorded < 0 else entry.recorded)
            view.entries[entry.run] = recorded
            view.end = offset + 1
            return recorded
        self._read_on(view, offset + 1)
        return view.entries[entry.run]

    def forget(self, runs: list[str], view: View) -> None:
        """Let compaction remove what earlier runs have left."""
        self._produce([(run, None) for run in runs])
        for run in runs:
            del view.entries[run]

    def _place(self) -> tuple[uuid.UUID, TopicPartition]:
        topic = self._cluster.topics([TOPIC]).get(TOPIC)
        if topic is None:
            self._create()
            topic = self._cluster.retry(f"find the topic {TOPIC}", lambda: self._cluster.topic(TOPIC))
        # Of those it was made with: a query must find its own list again though partitions were added.
        number = zlib.crc32(self._query.encode()) % min(_PARTITIONS, len(topic.leaders))
        return topic.id, TopicPartition(TOPIC, number)

    def _read_on(self, view: View, end: int) -> None:
        prefix = self._key("").encode()
        fetcher = Fetcher(
            self._cluster, self._partition, view.end, end, FetchSettings(block_bytes=1024 * 1024)
        )
        for block in fetcher.blocks():
            for located in block.batches:
                data = block.data[located.position : located.position + located.header.size]
                for record in decode_records(data, located.header):
                    if record.key is None or not record.key.startswith(prefix) or record.offset < view.end:
                        continue
                    run = record.key[len(prefix) :].decode()
                    if record.value is None:
                        view.entries.pop(run, None)
                    else:
                        view.entries[run] = Entry.decode(record.value, record.offset)
        view.end = max(view.end, end)

    def _key(self, run: str) -> str:
        return f"{self._query}/{run}"

    def _produce(self, records: list[tuple[str, bytes | None]]) -> int:
        """The offset of the first; written once however often it is sent, which the order of entries relies on."""
        now = time.time_ns() // 1_000_000
        builder = BatchBuilder()
        for run, value in records:
            builder.append(now, self._key(run).encode(), value)
        body = bytes(builder.build()[HEADER_SIZE:])
        draft = Draft(*self._partition, len(records), body, Codec.NONE, now, now)
        producer = SinkProducer(self._cluster, self._options)
        try:
            producer.send([draft])
            producer.flush()
        finally:
            producer.close()
        return producer.offsets[self._partition]

    def _create(self) -> None:
        config = [CreatableTopicConfig(name, value) for name, value in _CONFIG.items()]
        topic = CreatableTopic(TOPIC, _PARTITIONS, -1, configs=config)
        request = CreateTopicsRequest([topic], int(self._cluster.settings.request_timeout * 1000))

        def ask() -> None:
            reply = self._cluster.any_broker().call(request)
            code = ErrorCode(reply.topics[0].error_code)
            if code in RETRIABLE:
                raise KafkaError(code, reply.topics[0].error_message or code.name)
            if code and code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise KafkaError(
                    code,
                    f"Writing exactly once needs the topic {TOPIC}, which could not be created "
                    f"({reply.topics[0].error_message or code.name}): create it with cleanup.policy=compact, or set "
                    "exactlyOnce=false.",
                )

        self._cluster.retry(f"create the topic {TOPIC}", ask)

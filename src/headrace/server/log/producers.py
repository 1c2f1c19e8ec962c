"""What a partition remembers about its idempotent and transactional producers.

Per producer: its epoch, its last five batches (so that a retry is answered with the offsets of the first
try), and the transaction it has open. Per partition: which transactions are open, or ended above the high
watermark; below the first of those everything is stable. Checking changes nothing; the log updates after it
has written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from headrace.server.log.producer_entry import (
    AppendOrigin,
    BatchMetadata,
    CompletedTransaction,
    ProducerEntry,
    VerificationGuard,
)
from headrace.wire.batch import (
    MAX_SEQUENCE,
    NO_SEQUENCE,
    BatchHeader,
    Buffer,
    advance_sequence,
)
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import EndTransactionMarker, read_end_transaction_marker

BATCHES_KEPT = 5

EarlierHeaders = Callable[[], Iterator[BatchHeader]]


def _nothing_earlier() -> Iterator[BatchHeader]:
    return iter(())


class ProducerState:
    __slots__ = ("_earlier", "_from_snapshot", "_guards", "_ongoing", "_unreplicated", "entries", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        """The partition, for error sentences."""
        self.entries: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}
        """First offset → producer id; transactions begin at growing offsets, so the first key is the
        lowest."""
        self._unreplicated: dict[int, int] = {}
        """First offset → marker offset of transactions that ended above the high watermark."""
        self._guards: dict[int, VerificationGuard] = {}
        self._from_snapshot: set[int] = set()
        """Producers known from a snapshot, which has only their last batch; the earlier ones have not been looked up."""
        self._earlier: EarlierHeaders = _nothing_earlier

    def look_back(self, earlier: EarlierHeaders) -> None:
        """The log's files have been replaced by others with the same batches."""
        if self._earlier is not _nothing_earlier:
            self._earlier = earlier

    # Checking a batch before it is written

    def check(
        self, producer_id: int, epoch: int, first_sequence: int, count: int, transactional: bool
    ) -> BatchMetadata | None:
        """Check a client's batch; returns the earlier batch when this one is a retry of it."""
        entry = self.entries.get(producer_id)
        if entry is None:
            self._check_first(producer_id, first_sequence)
            return None
        if epoch == entry.epoch:
            batches = entry.batches
            if batches:
                if first_sequence != (batches[-1].last_sequence + 1) & MAX_SEQUENCE:
                    last_sequence = advance_sequence(first_sequence, count - 1)
                    if (retried := entry.find(first_sequence, last_sequence)) is not None:
                        return retried
                    if producer_id in self._from_snapshot:
                        self._find_earlier_batches(entry)
                        if (retried := entry.find(first_sequence, last_sequence)) is not None:
                            return retried
                    raise self._out_of_order(producer_id, first_sequence, batches[-1].last_sequence)
            elif first_sequence != 0:
                raise self._out_of_order(producer_id, first_sequence, NO_SEQUENCE)
        elif epoch < entry.epoch:
            raise self._fenced(producer_id, epoch, entry.epoch)
        elif first_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {producer_id} begins epoch {epoch} in {self.name} with sequence {first_sequence} "
                "instead of 0.",
            )
        if entry.transaction_first_offset >= 0 and not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {producer_id} has a transaction open in {self.name} and sent a batch outside it.",
            )
        guard = self._guards.get(producer_id)
        if guard is not None and first_sequence > guard.lowest_sequence:
            raise self._out_of_order(producer_id, first_sequence, guard.lowest_sequence - 1)
        return None

    def _find_earlier_batches(self, entry: ProducerEntry) -> None:
        """Look up a producer's batches before the one in the snapshot, until five are known."""
        batches = entry.batches
        for header in self._earlier():
            if len(batches) >= BATCHES_KEPT:
                break
            if (
                header.producer_id != entry.producer_id
                or header.is_control
                or header.base_offset >= batches[0].first_offset
            ):
                continue
            batch = BatchMetadata.of(header)
            if (
                header.producer_epoch != entry.epoch
                or advance_sequence(batch.last_sequence, 1) != batches[0].first_sequence
            ):
                break
            batches.insert(0, batch)
        self._from_snapshot.discard(entry.producer_id)

    def _check_first(self, producer_id: int, first_sequence: int) -> None:
        # An unknown producer may start with any sequence: retention may have deleted its records.
        guard = self._guards.get(producer_id)
        if guard is None:
            return
        if first_sequence > guard.lowest_sequence or (guard.supports_epoch_bump and first_sequence != 0):
            raise self._out_of_order(producer_id, first_sequence, NO_SEQUENCE)

    def check_coordinator_batch(self, producer_id: int, epoch: int, transactional: bool) -> None:
        """Offsets committed in a transaction carry no sequences; only epoch and transaction are checked."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        if epoch < entry.epoch:
            raise self._fenced(producer_id, epoch, entry.epoch)
        if entry.transaction_first_offset >= 0 and not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {producer_id} has a transaction open in {self.name}; this write is outside it.",
            )

    def check_marker(self, producer_id: int, epoch: int, marker: EndTransactionMarker) -> None:
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        if epoch < entry.epoch:
            raise self._fenced(producer_id, epoch, entry.epoch)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Coordinator epoch {marker.coordinator_epoch} for producer {producer_id} in {self.name} is "
                f"behind {entry.coordinator_epoch}: another coordinator has taken over.",
            )

    def check_marker_of_its_own_epoch(self, producer_id: int, epoch: int) -> None:
        """The epoch grows with every end of a transaction: a marker with that of one still open is for an earlier one. It is
        a retry if none is open."""
        entry = self.entries.get(producer_id)
        if entry is not None and epoch == entry.epoch and entry.transaction_first_offset >= 0:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"A marker with epoch {epoch} of producer {producer_id} came late to {self.name}: a transaction of that "
                "epoch is open there, which a marker with the next epoch will end.",
            )

    def _fenced(self, producer_id: int, epoch: int, current: int) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch {epoch} of producer {producer_id} in {self.name} is older than epoch {current}, "
            "already seen: a newer producer has taken over.",
        )

    def _out_of_order(self, producer_id: int, got: int, last: int) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Producer {producer_id} sent sequence {got} to {self.name} where "
            f"{advance_sequence(last, 1)} comes next: a batch before it is missing.",
        )

    # Updating after a batch was written

    def update(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.move_to_epoch(epoch)
        last_sequence = NO_SEQUENCE
        if first_sequence >= 0:
            last_sequence = (first_sequence + last_offset - first_offset) & MAX_SEQUENCE
        batches = entry.batches
        batches.append(BatchMetadata(first_sequence, last_sequence, first_offset, last_offset, timestamp))
        if len(batches) > BATCHES_KEPT:
            del batches[0]
        entry.last_timestamp = timestamp
        if transactional and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = first_offset
            self._ongoing[first_offset] = producer_id
            self._guards.pop(producer_id, None)

    def end_transaction(
        self, header: BatchHeader, marker: EndTransactionMarker
    ) -> tuple[CompletedTransaction, int] | None:
        """A marker was written. Returns the transaction it ended, unless that had no data here, and the last
        stable offset as it will be once the marker is below the high watermark."""
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, header.producer_epoch)
        entry.move_to_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        self._guards.pop(producer_id, None)
        first_offset = entry.transaction_first_offset
        if first_offset < 0:
            return None
        entry.transaction_first_offset = -1
        del self._ongoing[first_offset]
        self._unreplicated[first_offset] = header.base_offset
        stable = next(iter(self._ongoing), header.base_offset + 1)
        completed = CompletedTransaction(producer_id, first_offset, header.base_offset, not marker.committed)
        return completed, stable

    def replay(self, header: BatchHeader, batch: Buffer | None) -> tuple[CompletedTransaction, int] | None:
        """Take in a batch that was accepted before, here or by the leader; `batch` only for control
        batches."""
        if header.is_control:
            marker = read_end_transaction_marker(batch, header) if batch is not None else None
            return self.end_transaction(header, marker) if marker else None
        self.update(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            header.is_transactional,
        )
        return None

    # Stability

    @property
    def first_unstable_offset(self) -> int | None:
        """The lowest offset of a transaction that is open, or whose marker is not below the high
        watermark."""
        ongoing = next(iter(self._ongoing), None)
        if not self._unreplicated:
            return ongoing
        lowest = min(self._unreplicated)
        return lowest if ongoing is None else min(lowest, ongoing)

    def on_high_watermark(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == epoch

    # Verification of transactional clients

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """The guard to append with once the coordinator has agreed; None when the transaction is open
        here."""
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = VerificationGuard(now_ms, sequence, epoch, supports_epoch_bump)
            self._guards[producer_id] = guard
        guard.observe(sequence, epoch)
        return guard

    def is_verified(self, producer_id: int, epoch: int, guard: VerificationGuard | None) -> bool:
        if self.has_ongoing_transaction(producer_id, epoch):
            return True
        return guard is not None and self._guards.get(producer_id) is guard

    # Life

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without an open transaction that have been silent for so long."""
        for producer_id in [
            entry.producer_id
            for entry in self.entries.values()
            if entry.transaction_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]:
            del self.entries[producer_id]
            self._from_snapshot.discard(producer_id)
        for producer_id in [
            producer_id
            for producer_id, guard in self._guards.items()
            if now_ms - guard.started_ms >= expiration_ms
        ]:
            del self._guards[producer_id]

    def restore(self, entries: Iterable[ProducerEntry], earlier: EarlierHeaders = _nothing_earlier) -> None:
        """Begin with the entries of a snapshot; `earlier` reads the headers of the batches before it, newest first."""
        self.clear()
        self._earlier = earlier
        for entry in entries:
            self.entries[entry.producer_id] = entry
        self._from_snapshot = {entry.producer_id for entry in self.entries.values() if entry.batches}
        self._ongoing = {
            entry.transaction_first_offset: entry.producer_id
            for entry in sorted(self.entries.values(), key=lambda entry: entry.transaction_first_offset)
            if entry.transaction_first_offset >= 0
        }

    def clear(self) -> None:
        self.entries.clear()
        self._ongoing = {}
        self._unreplicated = {}
        self._from_snapshot = set()
        self._earlier = _nothing_earlier


__all__ = [
    "AppendOrigin",
    "BatchMetadata",
    "CompletedTransaction",
    "ProducerEntry",
    "ProducerState",
    "VerificationGuard",
]

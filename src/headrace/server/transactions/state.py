"""The state of one partition of `__transaction_state`: its transactional ids, replayed from its records."""

from __future__ import annotations

from collections.abc import Callable

from headrace.server.transactions.metadata import Transaction
from headrace.server.transactions.records import TransactionRecord, decode_record, encode_record


class TransactionState:
    def __init__(self, on_loaded: Callable[[], None], record_version: Callable[[], int]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._on_loaded = on_loaded
        self._record_version = record_version

    def encode(self, record: TransactionRecord) -> tuple[bytes, bytearray | None]:
        return encode_record(record, self._record_version())

    def decode(self, key: bytes, value: bytes | None) -> TransactionRecord | None:
        return decode_record(key, value)

    def replay(self, record: TransactionRecord, offset: int, producer_id: int) -> None:
        if record.transaction is None:
            self.transactions.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.transaction

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """This topic is never written in a transaction."""

    def loaded(self) -> None:
        self._on_loaded()

    def unloaded(self) -> None:
        """No request waits in the state itself."""

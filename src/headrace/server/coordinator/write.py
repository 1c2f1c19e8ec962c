"""A coordinator write: the records that change the state, and the reply that waits for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from headrace.wire.errors import ErrorCode, KafkaError

R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)


class Write(Generic[R, T_co]):
    """The result of an operation on the state. The records are appended as one batch, or not at all."""

    __slots__ = ("apply", "finish", "records", "reply")

    def __init__(
        self,
        records: Sequence[R],
        reply: T_co,
        apply: Callable[[], None] | None = None,
        finish: Callable[[KafkaError | None], None] | None = None,
    ) -> None:
        self.records = records
        self.reply = reply
        self.apply = apply
        """Called in place of replaying the records, where the change holds more than records can."""
        self.finish = finish
        """Called when the records are committed, or with the error when they never will be."""


def already_applied() -> None:
    """For `Write.apply`: the operation changed what it had to by itself."""


class StateMachine(Protocol[R]):
    """The state of one shard: a pure function of the records replayed, plus what need not survive a restart."""

    def encode(self, record: R) -> tuple[bytes | bytearray, bytes | bytearray | None]: ...

    def decode(self, key: bytes, value: bytes | None) -> R | None:
        """None for a record of a kind that this version does not know."""
        ...

    def replay(self, record: R, offset: int, producer_id: int) -> None: ...

    def end_transaction(self, producer_id: int, committed: bool) -> None: ...

    def loaded(self) -> None:
        """The log has been replayed to its end and requests may come."""
        ...

    def unloaded(self) -> None:
        """Leadership has moved: every waiting request must be answered."""
        ...


_CLIENT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def client_error(error: KafkaError) -> KafkaError:
    """The error code for a failed append that makes the client retry or look for the new coordinator."""
    code = _CLIENT_ERRORS.get(error.code)
    return error if code is None else KafkaError(code, error.message)

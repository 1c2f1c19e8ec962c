"""The steps of a transaction and which producer may take them: pure functions from one state to the next.

A producer is known by id and epoch. A producer with an older epoch is a zombie and is fenced. With client
version 2 (KIP-890) ending a transaction bumps the epoch, and the markers carry the new one, so a late message of the
old transaction can never land in the next.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.server.transactions.metadata import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Status,
    TopicPartition,
    Transaction,
)
from headrace.wire.errors import ErrorCode, KafkaError


def known(transaction: Transaction | None, producer_id: int) -> Transaction:
    if transaction is None or transaction.producer_id != producer_id:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "The transactional id does not belong to this producer id."
        )
    return transaction


def fenced() -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED, "A newer producer with the same transactional id has taken over."
    )


def busy() -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS, "The last transaction of this id is still being ended; try again."
    )


def initialise(
    transaction: Transaction | None,
    transactional_id: str,
    timeout_ms: int,
    expected: tuple[int, int],
    fresh_id: int,
    now_ms: int,
) -> Transaction:
    """A producer starts (again) with a transactional id: the next epoch fences earlier producers.

    `expected` is the id and epoch the producer believes it has, (-1, -1) for none. With an ongoing transaction the
    caller must abort that first (see `fence`).
    """
    if transaction is None:
        # The id is free: its last producer was forgotten after transactional.id.expiration.ms, and starts over.
        return Transaction(transactional_id, fresh_id, 0, timeout_ms, updated_ms=now_ms)
    _check_not_ending(transaction)
    producer_id, epoch = expected
    base = transaction._replace(
        timeout_ms=timeout_ms,
        status=Status.EMPTY,
        partitions=frozenset(),
        started_ms=-1,
        updated_ms=now_ms,
        next_producer_id=NO_PRODUCER_ID,
    )
    if producer_id != NO_PRODUCER_ID:
        if _missed_the_bump(transaction, producer_id, epoch):
            return transaction if transaction.status is Status.EMPTY else base
        if expected != (transaction.producer_id, transaction.producer_epoch):
            raise fenced()
    if transaction.epoch_exhausted:
        return base._replace(
            producer_id=fresh_id,
            producer_epoch=0,
            previous_producer_id=transaction.producer_id,
            last_epoch=transaction.producer_epoch if producer_id != NO_PRODUCER_ID else NO_EPOCH,
        )
    return base._replace(
        producer_epoch=transaction.producer_epoch + 1,
        last_epoch=transaction.producer_epoch if producer_id != NO_PRODUCER_ID else NO_EPOCH,
    )


def add_partitions(
    transaction: Transaction | None,
    producer_id: int,
    epoch: int,
    partitions: Iterable[TopicPartition],
    client_version: int,
    now_ms: int,
) -> Transaction:
    """The transaction reaches further partitions; the first of them begins it."""
    _check_not_ending(transaction)
    current = known(transaction, producer_id)
    if epoch != current.producer_epoch:
        raise fenced()
    if current.status is Status.ONGOING:
        added = current.partitions | frozenset(partitions)
        if added == current.partitions:
            return current
        return current._replace(partitions=added, updated_ms=now_ms)
    return current._replace(
        status=Status.ONGOING,
        partitions=frozenset(partitions),
        started_ms=now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def verify(
    transaction: Transaction | None, producer_id: int, epoch: int, partition: TopicPartition
) -> ErrorCode:
    """Whether a write to this partition is part of an open transaction."""
    try:
        current = known(transaction, producer_id)
    except KafkaError as error:
        return error.code
    if epoch != current.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if current.status.ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if current.status is Status.ONGOING and partition in current.partitions:
        return ErrorCode.NONE
    return ErrorCode.TRANSACTION_ABORTABLE


def end(
    transaction: Transaction | None,
    producer_id: int,
    epoch: int,
    commit: bool,
    client_version: int,
    fresh_id: int,
    now_ms: int,
) -> Transaction:
    """The transaction with its outcome decided, its markers still to come; unchanged if it has already ended this way."""
    committed = transaction is not None and transaction.status is Status.COMPLETE_COMMIT
    if client_version >= 2:
        _check_not_ending(transaction)
        if transaction is not None and _is_retry(transaction, producer_id, epoch):
            if committed is not commit:
                raise _wrong_state()
            return transaction
    current = known(transaction, producer_id)
    if epoch != current.producer_epoch:
        raise fenced()
    _check_not_ending(current)
    if client_version < 2:
        if current.status.ended and committed is commit:
            return current
        if current.status is not Status.ONGOING:
            raise _wrong_state()
    elif current.status is not Status.ONGOING and commit:
        raise _wrong_state()
    # How it ends says whether its markers have an epoch of their own, however it began.
    current = current._replace(client_version=client_version)
    return _prepare(current, commit, client_version >= 2, fresh_id, now_ms)


def fence(transaction: Transaction, fresh_id: int, now_ms: int) -> Transaction:
    """Abort an ongoing transaction from outside (a timeout, a new producer): the old producer is shut out."""
    return _prepare(transaction, False, True, fresh_id, now_ms)


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """Every partition has its marker."""
    committed = transaction.status is Status.PREPARE_COMMIT
    done = transaction._replace(
        status=Status.COMPLETE_COMMIT if committed else Status.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
    if transaction.next_producer_id != NO_PRODUCER_ID:
        done = done._replace(
            producer_id=transaction.next_producer_id,
            producer_epoch=0,
            previous_producer_id=transaction.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )
    return done


def answer_to_end(transaction: Transaction) -> tuple[int, int]:
    """The id and epoch the producer goes on with."""
    if transaction.next_producer_id != NO_PRODUCER_ID:
        return transaction.next_producer_id, 0
    return transaction.producer_id, transaction.producer_epoch


def _prepare(current: Transaction, commit: bool, bump: bool, fresh_id: int, now_ms: int) -> Transaction:
    status = Status.PREPARE_COMMIT if commit else Status.PREPARE_ABORT
    started = current.started_ms if current.status is Status.ONGOING else now_ms
    partitions = current.partitions if current.status is Status.ONGOING else frozenset()
    ended = current._replace(status=status, partitions=partitions, started_ms=started, updated_ms=now_ms)
    if not bump:
        return ended
    if current.epoch_exhausted:
        return ended._replace(
            producer_epoch=LAST_EPOCH, last_epoch=current.producer_epoch, next_producer_id=fresh_id
        )
    return ended._replace(producer_epoch=current.producer_epoch + 1, last_epoch=current.producer_epoch)


def _check_not_ending(transaction: Transaction | None) -> None:
    """Check this before id and epoch: those that a producer got at the end of its last transaction take effect only once
    that has ended."""
    if transaction is not None and transaction.status.ending:
        raise busy()


def _is_retry(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """The producer retries with its epoch from before the bump, because it missed the answer."""
    if not transaction.status.ended:
        return False
    if producer_id == transaction.producer_id:
        return epoch == transaction.producer_epoch - 1
    return _is_last_of_previous(transaction, producer_id, epoch) and transaction.producer_epoch == 0


def _missed_the_bump(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """The same for a producer that starts again: it missed the last answer, or its transaction timed out. No other producer
    has taken over, or the epoch before the bump would not be remembered."""
    if epoch != transaction.last_epoch:
        return False
    return producer_id == transaction.producer_id or _is_last_of_previous(transaction, producer_id, epoch)


def _is_last_of_previous(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """Only the last epoch of the previous id can be its owner; all earlier ones were fenced under that id."""
    return producer_id == transaction.previous_producer_id and epoch == LAST_EPOCH - 1


def _wrong_state() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TXN_STATE, "The transaction is not in a state that allows this.")

"""What can go wrong in the client, one class per thing a caller would do differently.

Every message is one sentence: the cause and the remedy. ``explain`` turns a librdkafka error into one of
them.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from confluent_kafka import KafkaError, KafkaException


class ClientError(Exception):
    """The base of all errors of headrace.client."""


class ConfigError(ClientError, ValueError):
    """A setting is unknown, contradictory or has a value it cannot have."""


class MissingExtra(ClientError, ImportError):
    """An optional library is not installed."""


class BrokerError(ClientError):
    """The cluster refused, or could not be reached; ``code`` is Kafka's error code (negative: local)."""

    def __init__(self, message: str, code: int = KafkaError.UNKNOWN, *, retriable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retriable = retriable


class DeliveryError(BrokerError):
    """A record was not written, or it is not known whether it was: the retries or the time ran out."""


class BufferFull(ClientError):
    """The producer's buffer stayed full for max.block.ms."""


class CommitError(BrokerError):
    """Offsets were not committed, most often because the partitions belong to another member by now."""


class FencedError(BrokerError):
    """A newer producer with the same transactional.id, or a newer member, has taken over from this one."""


class TransactionAborted(BrokerError):
    """The transaction was rolled back and read_committed consumers see nothing of it. Try it again."""


class SerializationError(ClientError, ValueError):
    """A key or value cannot be turned into bytes."""


class DeserializationError(ClientError, ValueError):
    """The bytes of a key or value are not what the deserializer expects. Trying again cannot help."""


class TryLater(ClientError):
    """Raised in a handler: not now. The record comes again, and no attempt is counted."""

    def __init__(self, message: str, delay: float | None = None) -> None:
        super().__init__(message)
        self.delay = delay


class Reject(ClientError):
    """Raised in a handler: this record will never succeed. It goes to the dead letters at once."""


class HandlerFailed(ClientError):
    """A record failed for good and there is no dead-letter topic to put it in, so the runner stopped."""


def explain(error: KafkaError) -> str:
    """The librdkafka error as a sentence, with a remedy where there is a usual one."""
    remedy = _REMEDIES.get(error.code())
    text = error.str().rstrip(".")
    return f"{text} ({error.name()}): {remedy}" if remedy else f"{text} ({error.name()})"


def broker_error(cause: KafkaException | KafkaError, doing: str) -> BrokerError:
    """The exception to raise; ``doing`` says what was being tried, as in "creating topic orders"."""
    error = kafka_error(cause)
    kind = FencedError if error.code() in _FENCED else BrokerError
    return kind(f"{doing} failed: {explain(error)}", error.code(), retriable=is_retriable(error))


def commit_error(error: KafkaError) -> BrokerError:
    kind = FencedError if is_fenced(error) else CommitError
    return kind(f"committing offsets failed: {explain(error)}", error.code(), retriable=is_retriable(error))


def kafka_error(cause: KafkaException | KafkaError) -> KafkaError:
    if isinstance(cause, KafkaError):
        return cause
    inner = cause.args[0] if cause.args else None
    return inner if isinstance(inner, KafkaError) else KafkaError(KafkaError._FAIL, str(cause))


def is_fenced(error: KafkaError) -> bool:
    return error.code() in _FENCED


def is_retriable(error: KafkaError) -> bool:
    """Whether trying again may help. librdkafka itself says so for the steps of transactions only."""
    return error.retriable() or error.code() in _RETRIABLE


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say in one sentence how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        name = module.partition(".")[0]
        raise MissingExtra(
            f"{purpose} needs {name}, which is not installed: pip install 'headrace[{extra}]'"
        ) from missing


_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
    }
)

_RETRIABLE = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)

_REMEDIES = {
    KafkaError._TRANSPORT: "check bootstrap.servers and that the broker is running",
    KafkaError._ALL_BROKERS_DOWN: "check bootstrap.servers and that the brokers are running",
    KafkaError._RESOLVE: "the host name in bootstrap.servers or advertised.listeners cannot be resolved",
    KafkaError._MSG_TIMED_OUT: (
        "no acknowledgement within delivery.timeout.ms; the record may or may not be written"
    ),
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "raise max.message.bytes of the topic and max.request.size of the producer"
    ),
    KafkaError.NOT_ENOUGH_REPLICAS: "fewer in-sync replicas than min.insync.replicas; bring a broker back",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create the topic first, or allow auto.create.topics.enable",
    KafkaError._UNKNOWN_TOPIC: "create the topic first, or allow auto.create.topics.enable",
    KafkaError.TOPIC_EXCEPTION: "a topic's name has up to 249 letters, digits, dots, underscores and hyphens",
    KafkaError._UNKNOWN_PARTITION: "the topic has fewer partitions",
    KafkaError.INVALID_REPLICATION_FACTOR: "ask for at most as many replicas as there are live brokers",
    KafkaError.ILLEGAL_GENERATION: (
        "the group has rebalanced; the partitions may belong to another member now"
    ),
    KafkaError.UNKNOWN_MEMBER_ID: (
        "the group has dropped this member; poll more often or raise max.poll.interval.ms"
    ),
    KafkaError._AUTO_OFFSET_RESET: (
        "there is no valid committed offset and auto.offset.reset does not choose one"
    ),
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the principal lacks an ACL for the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the principal lacks an ACL for the group",
    KafkaError.NON_EMPTY_GROUP: "stop the members of the group first",
}

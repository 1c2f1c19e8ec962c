"""Everything a Python program needs to use Headrace, or any Kafka, through the wire protocol.

The names below are the whole public surface; the modules behind them may change.

A name is imported when it is first used: the commands need a few of these modules, and start faster without the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.client import registered, serializers
    from headrace.client.admin import Admin, Group, Member, Partition, Topic
    from headrace.client.aio_admin import AsyncAdmin
    from headrace.client.aio_consumer import AsyncConsumer
    from headrace.client.aio_producer import AsyncProducer
    from headrace.client.consumer import Consumer
    from headrace.client.dead_letter_box import DeadLetter, DeadLetterBox
    from headrace.client.degrade.conditions import LagBounds
    from headrace.client.degrade.rules import DropWhere, PastDeadline, SampleByKey, SwitchOff
    from headrace.client.errors import (
        BrokerError,
        BufferFull,
        ClientError,
        CommitError,
        ConfigError,
        DeliveryError,
        DeserializationError,
        FencedError,
        HandlerFailed,
        MissingExtra,
        Reject,
        SerializationError,
        TransactionAborted,
        TryLater,
    )
    from headrace.client.lag import GroupLag, LagMonitor, PartitionLag
    from headrace.client.partitioners import ConsistentHash, HashSlots, Murmur2, RoundRobin, Sticky
    from headrace.client.producer import Producer
    from headrace.client.record import Record, RecordMetadata, TopicPartition
    from headrace.client.runner.aio import AsyncRunner
    from headrace.client.runner.hooks import Hook, Metrics, Tracing, trace_headers
    from headrace.client.runner.retry import Retry
    from headrace.client.runner.threads import Runner

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncRunner",
    "BrokerError",
    "BufferFull",
    "ClientError",
    "CommitError",
    "ConfigError",
    "ConsistentHash",
    "Consumer",
    "DeadLetter",
    "DeadLetterBox",
    "DeliveryError",
    "DeserializationError",
    "DropWhere",
    "FencedError",
    "Group",
    "GroupLag",
    "HandlerFailed",
    "HashSlots",
    "Hook",
    "LagBounds",
    "LagMonitor",
    "Member",
    "Metrics",
    "MissingExtra",
    "Murmur2",
    "Partition",
    "PartitionLag",
    "PastDeadline",
    "Producer",
    "Record",
    "RecordMetadata",
    "Reject",
    "Retry",
    "RoundRobin",
    "Runner",
    "SampleByKey",
    "SerializationError",
    "Sticky",
    "SwitchOff",
    "Topic",
    "TopicPartition",
    "Tracing",
    "TransactionAborted",
    "TryLater",
    "registered",
    "serializers",
    "trace_headers",
]

_NAMES_IN = {
    "admin": "Admin Group Member Partition Topic",
    "aio_admin": "AsyncAdmin",
    "aio_consumer": "AsyncConsumer",
    "aio_producer": "AsyncProducer",
    "consumer": "Consumer",
    "dead_letter_box": "DeadLetter DeadLetterBox",
    "degrade.conditions": "LagBounds",
    "degrade.rules": "DropWhere PastDeadline SampleByKey SwitchOff",
    "errors": (
        "BrokerError BufferFull ClientError CommitError ConfigError DeliveryError DeserializationError "
        "FencedError HandlerFailed MissingExtra Reject SerializationError TransactionAborted TryLater"
    ),
    "lag": "GroupLag LagMonitor PartitionLag",
    "partitioners": "ConsistentHash HashSlots Murmur2 RoundRobin Sticky",
    "producer": "Producer",
    "record": "Record RecordMetadata TopicPartition",
    "runner.aio": "AsyncRunner",
    "runner.hooks": "Hook Metrics Tracing trace_headers",
    "runner.retry": "Retry",
    "runner.threads": "Runner",
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name in ("registered", "serializers"):
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

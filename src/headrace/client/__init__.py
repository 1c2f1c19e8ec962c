"""Everything a Python program needs to use Headrace, or any Kafka, through the wire protocol.

The names below are the whole public surface; the modules behind them may change.
"""

from headrace.client import serializers
from headrace.client.admin import Admin, Group, Member, Partition, Topic
from headrace.client.aio_admin import AsyncAdmin
from headrace.client.aio_consumer import AsyncConsumer
from headrace.client.aio_producer import AsyncProducer
from headrace.client.consumer import Consumer
from headrace.client.dead_letter_box import DeadLetter, DeadLetterBox
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
    "FencedError",
    "Group",
    "GroupLag",
    "HandlerFailed",
    "HashSlots",
    "Hook",
    "LagMonitor",
    "Member",
    "Metrics",
    "MissingExtra",
    "Murmur2",
    "Partition",
    "PartitionLag",
    "Producer",
    "Record",
    "RecordMetadata",
    "Reject",
    "Retry",
    "RoundRobin",
    "Runner",
    "SerializationError",
    "Sticky",
    "Topic",
    "TopicPartition",
    "Tracing",
    "TransactionAborted",
    "TryLater",
    "serializers",
    "trace_headers",
]

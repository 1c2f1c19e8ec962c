"""Everything a Python program needs to use Headrace, or any Kafka, through the wire protocol.

The names below are the whole public surface; the modules behind them may change.
"""

from headrace.client import serializers
from headrace.client.admin import Admin, Group, Member, Partition, Topic
from headrace.client.aio import AsyncConsumer, AsyncProducer
from headrace.client.consumer import Consumer
from headrace.client.errors import (
    BrokerError,
    BufferFull,
    ClientError,
    CommitError,
    ConfigError,
    DeliveryError,
    DeserializationError,
    FencedError,
    MissingExtra,
    SerializationError,
    TransactionAborted,
)
from headrace.client.partitioners import ConsistentHash, HashSlots, Murmur2, RoundRobin, Sticky
from headrace.client.producer import Producer
from headrace.client.record import Record, RecordMetadata, TopicPartition

__all__ = [
    "Admin",
    "AsyncConsumer",
    "AsyncProducer",
    "BrokerError",
    "BufferFull",
    "ClientError",
    "CommitError",
    "ConfigError",
    "ConsistentHash",
    "Consumer",
    "DeliveryError",
    "DeserializationError",
    "FencedError",
    "Group",
    "HashSlots",
    "Member",
    "MissingExtra",
    "Murmur2",
    "Partition",
    "Producer",
    "Record",
    "RecordMetadata",
    "RoundRobin",
    "SerializationError",
    "Sticky",
    "Topic",
    "TopicPartition",
    "TransactionAborted",
    "serializers",
]

"""Records with schemas on the command line and in a test: what is written as JSON is read as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headrace.testing.broker import BrokerThread
from headrace.testing.registry import RegistryThread
from tests.registry.conftest import Rest, record
from tests.registry.test_serializers import order_class


def headrace(*arguments: str, lines: str = "") -> tuple[int, str, str]:
    command = [sys.executable, "-m", "headrace.cli", *arguments]
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_produce_and_consume_by_registry(broker: BrokerThread, registry: RegistryThread, rest: Rest) -> None:
    cluster = ("-b", broker.bootstrap, "--registry", registry.url)
    kinds: dict[str, tuple[str, Any]] = {
        "rec-avro": ("AVRO", record("Rec", "a", "b?")),
        "rec-json": ("JSON", {"type": "object", "properties": {"a": {"type": "integer"}}}),
        "rec-proto": ("PROTOBUF", 'syntax = "proto3"; message Rec { int32 a = 1; }'),
    }
    for topic, (kind, schema) in kinds.items():
        rest.register(f"{topic}-value", schema, kind)
        code, _, said = headrace("produce", topic, *cluster, lines='{"a": 7}\n{"a": 8}\n')
        assert code == 0, said
        code, shown, said = headrace("consume", topic, "--from-beginning", "--until-end", *cluster)
        assert code == 0, said
        assert [json.loads(line)["a"] for line in shown.splitlines()] == [7, 8]
        raw = headrace("consume", topic, "--from-beginning", "--max", "1", "-b", broker.bootstrap)[1]
        assert not raw.startswith("{")
    code, _, said = headrace("produce", "rec-avro", *cluster, lines='{"b": "x"}\n')
    assert code == 1
    assert "Line 1: the value does not fit the newest schema of rec-avro-value" in said
    code, _, said = headrace("produce", "rec-none", *cluster, lines="{}\n")
    assert "'headrace schemas register rec-none-value FILE' gives it one" in said


def test_what_confluents_serializer_wrote_is_read_and_what_has_no_schema_stays(
    broker: BrokerThread, registry: RegistryThread
) -> None:
    order = order_class()
    options = {"use.deprecated.format": False}
    write = ProtobufSerializer(order, SchemaRegistryClient({"url": registry.url}), options)
    value = order(a=7)
    value.at.FromJsonString("2026-01-01T00:00:00Z")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    broker.create_topic("rec-mixed", 1)
    producer.produce(
        "rec-mixed", write(value, SerializationContext("rec-mixed", MessageField.VALUE)), key=b"k"
    )
    producer.produce("rec-mixed", b"plain")
    producer.flush()
    _, shown, _ = headrace(
        "consume", "rec-mixed", "--from-beginning", "--until-end", "-b", broker.bootstrap, "-r", registry.url
    )
    assert shown.splitlines() == ['{"a":7,"at":"2026-01-01T00:00:00Z"}', "plain"]


def test_the_fixture(headrace_broker: BrokerThread, headrace_registry: RegistryThread) -> None:
    assert Rest(headrace_registry.url).register("a", record("A", "a")) == 1
    assert headrace_broker.bootstrap

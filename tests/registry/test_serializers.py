"""confluent-kafka's own client and serializers, blocking and asyncio, for the three formats, unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from confluent_kafka.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from headrace.testing.registry import RegistryThread
from tests.registry.conftest import record

JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
    }
)


@pytest.fixture
def client(registry: RegistryThread) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


@pytest.fixture
def aio(registry: RegistryThread) -> AsyncSchemaRegistryClient:
    return AsyncSchemaRegistryClient({"url": registry.url})


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def order_class() -> Any:
    """A generated class, made without protoc."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Order")
    message.field.add(name="a", number=1, label=1, type=5, json_name="a")
    message.field.add(
        name="at", number=2, label=1, type=11, type_name=".google.protobuf.Timestamp", json_name="at"
    )
    from google.protobuf import timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_avro(client: SchemaRegistryClient) -> None:
    where = context("ser-avro")
    write = AvroSerializer(client, json.dumps(record("Order", "a")))
    data = write({"a": 7}, where)
    assert data is not None
    assert AvroDeserializer(client)(data, where) == {"a": 7}
    reader = AvroDeserializer(client, json.dumps(record("Order", "a", "b?")))
    assert reader(data, where) == {"a": 7, "b": 0}
    with pytest.raises(SchemaRegistryError) as refused:
        AvroSerializer(client, json.dumps(record("Order", "a", "b")))({"a": 1, "b": 2}, where)
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)


def test_json(client: SchemaRegistryClient) -> None:
    where = context("ser-json")
    data = JSONSerializer(JSON, client)({"a": 7}, where)
    assert data is not None
    assert JSONDeserializer(None, schema_registry_client=client)(data, where) == {"a": 7}


def test_protobuf(client: SchemaRegistryClient) -> None:
    where, order = context("ser-proto"), order_class()
    options = {"use.deprecated.format": False}
    data = ProtobufSerializer(order, client, options)(order(a=7), where)
    assert data is not None
    assert ProtobufDeserializer(order, options, client)(data, where).a == 7
    text = client.get_latest_version("ser-proto-value").schema.schema_str
    assert text is not None
    assert text.startswith('syntax = "proto3";\npackage shop;\n\nimport "google/protobuf/timestamp.proto";\n')
    assert "google.protobuf.Timestamp at = 2;" in text
    # The same as text, as other languages' serializers send it.
    assert (
        client.register_schema("ser-proto-value", Schema(text, "PROTOBUF"))
        == client.get_latest_version("ser-proto-value").schema_id
    )


async def test_avro_on_a_loop(aio: AsyncSchemaRegistryClient) -> None:
    where = context("ser-avro-aio")
    write = await AsyncAvroSerializer(aio, json.dumps(record("Order", "a")))
    data = await write({"a": 7}, where)
    read = await AsyncAvroDeserializer(aio)
    assert await read(data, where) == {"a": 7}


async def test_json_on_a_loop(aio: AsyncSchemaRegistryClient) -> None:
    where = context("ser-json-aio")
    write = await AsyncJSONSerializer(JSON, aio)
    data = await write({"a": 7}, where)
    read = await AsyncJSONDeserializer(None, schema_registry_client=aio)
    assert await read(data, where) == {"a": 7}


async def test_protobuf_on_a_loop(aio: AsyncSchemaRegistryClient) -> None:
    where, order = context("ser-proto-aio"), order_class()
    options = {"use.deprecated.format": False}
    write = await AsyncProtobufSerializer(order, aio, options)
    data = await write(order(a=7), where)
    read = await AsyncProtobufDeserializer(order, options, aio)
    assert (await read(data, where)).a == 7


def test_everything_else_the_client_can_ask(client: SchemaRegistryClient) -> None:
    schema = Schema(json.dumps(record("Client", "a")), "AVRO")
    number = client.register_schema("ser-client", schema)
    assert client.get_schema(number).schema_str == schema.schema_str.replace(" ", "")  # type: ignore[union-attr]
    assert client.lookup_schema("ser-client", schema).version == 1
    assert client.get_version("ser-client", 1).schema_id == number
    assert client.test_compatibility("ser-client", schema) is True
    assert client.test_compatibility_all_versions("ser-client", schema) is True
    client.set_compatibility("ser-client", "FULL_TRANSITIVE")
    assert client.get_compatibility("ser-client") == "FULL_TRANSITIVE"
    assert str(client.get_config("ser-client").compatibility_level) == "FULL_TRANSITIVE"
    client.update_mode("ser-client", "READONLY")
    assert client.get_mode("ser-client") == "READONLY"
    client.delete_mode("ser-client")
    client.delete_config("ser-client")
    assert client.get_global_mode() == "READWRITE"
    assert client.get_versions("ser-client") == [1]
    assert "ser-client" in client.get_subjects()
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "c", "type": "Client"}]}
    reference = SchemaReference("Client", "ser-client", 1)
    outer_id = client.register_schema("ser-outer", Schema(json.dumps(outer), "AVRO", [reference]))
    assert client.get_referenced_by("ser-client", 1) == [outer_id]
    assert client.delete_subject("ser-outer") == [1]
    assert client.delete_subject("ser-outer", permanent=True) == [1]
    assert client.delete_version("ser-client", 1) == 1

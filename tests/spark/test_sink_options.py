"""What the sink says about columns and settings, before a job runs."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.link.settings import SettingsError
from headrace.spark.sink_options import WriteOptions
from headrace.wire.compression import Codec

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
TOPIC = {**SERVERS, "topic": "t"}
STRING, BINARY, INT = StringType(), BinaryType(), IntegerType()


def options(given, streaming=False, **columns):
    schema = StructType([StructField(name, kind) for name, kind in columns.items()])
    return WriteOptions.of(given, schema, streaming=streaming)


def test_the_defaults_are_those_of_the_java_producer_and_streams_are_exactly_once():
    batch, stream = options(TOPIC, value=STRING), options(TOPIC, value=STRING, streaming=True)
    assert (batch.acks, batch.codec, batch.idempotent) == (-1, Codec.NONE, True)
    assert (batch.exactly_once, stream.exactly_once) == (False, True)
    assert stream.transaction_timeout_ms == 900_000


def test_settings_are_understood_in_any_case():
    given = {**TOPIC, "KAFKA.Acks": "1", "kafka.compression.TYPE": "LZ4", "Kafka.Batch.Size": "1000"}
    found = options(given, value=STRING)
    assert (found.acks, found.codec, found.batch_bytes, found.idempotent) == (1, Codec.LZ4, 1000, False)


def test_only_columns_of_a_record_are_written_and_the_timestamp_only_when_asked():
    columns = {"value": BINARY, "key": STRING, "offset": INT, "timestamp": TimestampType(), "topic": STRING}
    assert options(SERVERS, **columns).columns == ("topic", "key", "value")
    assert options(TOPIC, **columns).columns == ("key", "value")
    assert options({**TOPIC, "includeTimestamp": "true"}, **columns).columns == ("key", "value", "timestamp")


@pytest.mark.parametrize(
    ("columns", "given", "sentence"),
    [
        (
            {"value": STRING},
            SERVERS,
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.",
        ),
        ({"payload": STRING}, TOPIC, "Required attribute 'value' not found"),
        ({"value": INT}, TOPIC, "value attribute unsupported type int. value must be a(n) string or binary"),
        (
            {"value": STRING, "key": INT},
            TOPIC,
            "key attribute unsupported type int. key must be a(n) string or binary",
        ),
        (
            {"value": STRING, "topic": INT},
            SERVERS,
            "topic attribute unsupported type int. topic must be a(n) string",
        ),
        (
            {"value": STRING, "headers": ArrayType(STRING)},
            TOPIC,
            "headers attribute unsupported type array<string>. headers must be a(n) "
            "array<struct<key:string,value:binary>>",
        ),
        (
            {"value": STRING, "partition": STRING},
            TOPIC,
            "partition attribute unsupported type string. partition must be a(n) int",
        ),
        (
            {"value": STRING},
            {**TOPIC, "kafka.key.serializer": "x"},
            "Kafka option 'key.serializer' is not supported as keys are serialized with ByteArraySerializer.",
        ),
        (
            {"value": STRING},
            {"topic": "t"},
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer",
        ),
        ({"value": STRING}, {**TOPIC, "kafka.acks": "2"}, "kafka.acks is '2'; it is one of all, -1, 1, 0."),
        (
            {"value": STRING},
            {**TOPIC, "kafka.acks": "1", "kafka.enable.idempotence": "true"},
            "kafka.enable.idempotence needs kafka.acks=all: leave kafka.acks alone.",
        ),
        (
            {"value": STRING},
            {**TOPIC, "kafka.batch.size": "big"},
            "kafka.batch.size is 'big'; it is a positive number.",
        ),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_sentence(columns, given, sentence):
    with pytest.raises(SettingsError) as refused:
        options(given, **columns)
    assert str(refused.value) == sentence


def test_a_stream_exactly_once_needs_all_replicas():
    with pytest.raises(SettingsError, match=r"exactlyOnce needs kafka\.acks=all"):
        options({**TOPIC, "kafka.acks": "1"}, value=STRING, streaming=True)
    assert (
        options({**TOPIC, "kafka.acks": "1", "exactlyOnce": "false"}, value=STRING, streaming=True).acks == 1
    )

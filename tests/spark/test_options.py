"""Options as the official connector takes them; what cannot be meant is refused in one sentence."""

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from headrace.link.settings import SettingsError
from headrace.spark.offsets import EARLIEST, LATEST, TopicPartition
from headrace.spark.options import ReadOptions
from headrace.spark.settings import kafka_settings
from headrace.spark.source import HeadraceSource

BASE = {"kafka.bootstrap.servers": "one:9092, two:9093"}


def options(streaming=False, **given):
    return ReadOptions.of({**BASE, "subscribe": "t", **given}, streaming=streaming)


def test_names_are_taken_in_any_case():
    read = options(
        STARTINGOFFSETS="earliest", failondataloss="FALSE", **{"KAFKA.Isolation.Level": "READ_committed"}
    )
    assert (read.start.everywhere, read.fail_on_data_loss, read.committed) == (EARLIEST, False, True)
    assert read.kafka.bootstrap == (("one", 9092), ("two", 9093))
    assert options(**{"kafka.bootstrap.servers": "SSL://[::1]:9093"}).kafka.bootstrap == (("::1", 9093),)


def test_a_batch_reads_everything_and_a_stream_what_is_new_unless_told_otherwise():
    assert (options().start.everywhere, options().end.everywhere) == (EARLIEST, LATEST)
    assert options(streaming=True).start.everywhere == LATEST


def test_offsets_are_read_from_json_with_minus_one_and_two():
    read = options(streaming=True, startingOffsets='{"t":{"0":23,"1":-1,"2":-2}}')
    assert read.start.offsets == {
        TopicPartition("t", 0): 23,
        TopicPartition("t", 1): LATEST,
        TopicPartition("t", 2): EARLIEST,
    }


def test_a_timestamp_for_all_comes_before_timestamps_and_these_before_offsets():
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t":{"0":5}}'}
    assert options(**given).start.timestamps == {TopicPartition("t", 0): 5}
    assert options(**given, startingTimestamp="7").start.timestamp == 7


def test_columns_keep_the_order_of_the_schema():
    source = HeadraceSource({**BASE, "columns": "VALUE, key,timestamptype"})
    assert source.schema().fieldNames() == ["key", "value", "timestampType"]
    assert HeadraceSource({"includeHeaders": "true"}).schema().fieldNames()[-1] == "headers"


def test_the_schema_is_fixed():
    source = HeadraceSource({**BASE, "subscribe": "t", "columns": "value"})
    source.reader(source.schema())
    for ask in (source.reader, source.streamReader):
        with pytest.raises(SettingsError, match="fixed schema and cannot be set with a custom one"):
            ask(StructType([StructField("value", StringType())]))


def test_an_end_before_the_start_may_be_believed_at_once():
    assert options(**{"fetchOffset.numRetries": "0"}).fetch_retries == 0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"subscribe": " , "}, "No topics to subscribe to"),
        ({"assign": '{"t":[0]}'}, "Only one of the following options"),
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets for t-0 can't be latest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be earliest"),
        ({"startingOffsets": "yesterday"}, "Expected e.g."),
        ({"startingOffsets": '{"t":5}'}, "Expected e.g."),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "Expected e.g."),
        ({"startingTimestamp": "noon"}, "Expected a single long value"),
        ({"endingTimestamp": "-3"}, "Expected a single long value"),
        ({"startingOffsetsByTimestamp": '{"t":{"0":-1}}'}, "1700000000000"),
        ({"fetchOffset.numRetries": "-1"}, "0 or more"),
        ({"failOnRecreatedTopic": "1"}, "true or false"),
        ({"startingOffsets": '{"t":{"0":1}}', "endingOffsets": '{"t":{"1":1}}'}, "same topic-partitions"),
        ({"startingOffsets": '{"t":{"0":9}}', "endingOffsets": '{"t":{"0":1}}'}, "greater than the end"),
        ({"minPartitions": "0"}, "minPartitions must be positive"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger must be positive"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"},
            "is higher than the maxOffsetsPerTrigger",
        ),
        ({"maxTriggerDelay": "soon"}, "15m, 30s or 500ms"),
        ({"failOnDataLoss": "perhaps"}, "true or false"),
        ({"columns": "value,colour"}, "it names some of"),
        ({"kafka.isolation.level": "none"}, "read_uncommitted, read_committed"),
        ({"kafka.auto.offset.reset": "earliest"}, "'auto.offset.reset' is not supported"),
        ({"kafka.enable.auto.commit": "true"}, "'enable.auto.commit' is not supported"),
        ({"kafka.value.deserializer": "x"}, "'value.deserializer' is not supported"),
        ({"kafka.bootstrap.servers": "nowhere"}, "host:port"),
        ({"kafka.bootstrap.servers": ""}, "Option 'kafka.bootstrap.servers' must be specified"),
        ({"kafka.request.timeout.ms": "long"}, "number of milliseconds"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, sentence):
    with pytest.raises(SettingsError, match=sentence):
        options(**given)


def test_one_way_to_choose_topics_must_be_given():
    with pytest.raises(SettingsError, match="One of the following options must be specified"):
        ReadOptions.of(BASE, streaming=False)
    with pytest.raises(SettingsError, match="not a regular expression"):
        ReadOptions.of({**BASE, "subscribePattern": "a("}, streaming=False)
    with pytest.raises(SettingsError, match="No topicpartitions to assign"):
        ReadOptions.of({**BASE, "assign": "{}"}, streaming=False)


def test_a_stream_takes_no_end():
    with pytest.raises(SettingsError, match="ending offset not valid in streaming queries"):
        options(streaming=True, endingOffsets="latest")


def kafka(**given):
    names = {f"kafka.{name.replace('_', '.')}": value for name, value in given.items()}
    return kafka_settings({**BASE, **names})


def test_a_login_is_taken_from_jaas_as_java_users_write_it():
    jaas = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="al\\"ice" password="s3cret;" ;'
    )
    login = kafka(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=jaas).login
    assert (login.mechanism, login.username, login.password) == ("SCRAM-SHA-512", 'al"ice', "s3cret;")
    assert "s3cret" not in repr(login)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"security_protocol": "TELNET"}, "PLAINTEXT, SSL"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "NTLM"}, "kafka.sasl.mechanism is NTLM"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}, "SASL needs a user"),
        ({"security_protocol": "SSL", "ssl_truststore_location": "/trust.jks"}, "keytool -importkeystore"),
        ({"security_protocol": "SSL", "ssl_keystore_key": "k"}, "belong together"),
    ],
)
def test_security_that_cannot_be_had_is_named(given, sentence):
    with pytest.raises(SettingsError, match=sentence):
        kafka(**given)

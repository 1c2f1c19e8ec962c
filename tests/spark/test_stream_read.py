"""Streaming reads by a real local Spark: resumed from a checkpoint, and through a restart of the broker."""

import pytest


@pytest.fixture
def stream(spark):
    """A streaming data frame of the numbers in a topic's values."""

    def make(bootstrap, topic, **options):
        reader = spark.readStream.format("headrace").option("kafka.bootstrap.servers", bootstrap)
        frame = reader.options(subscribe=topic, startingOffsets="earliest", **options).load()
        return frame.selectExpr("cast(cast(value as string) as int) as n")

    return make


def numbers(spark, path):
    return sorted(row.n for row in spark.read.schema("n int").parquet(str(path)).collect())


def run(frame, tmp_path, **trigger):
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    return writer.trigger(**trigger).start(str(tmp_path / "out"))


def test_available_now_takes_what_is_there_in_limited_batches_and_resumes(
    spark, stream, bootstrap, make_topic, produce, tmp_path
):
    topic = make_topic(2)
    produce(topic, [b"%d" % n for n in range(50)], 0)
    produce(topic, [b"%d" % n for n in range(50, 100)], 1)
    query = run(stream(bootstrap, topic, maxOffsetsPerTrigger="40"), tmp_path, availableNow=True)
    assert query.awaitTermination(90)
    assert [progress.numInputRows for progress in query.recentProgress] == [40, 40, 20]
    assert numbers(spark, tmp_path / "out") == list(range(100))
    produce(topic, [b"%d" % n for n in range(100, 130)], 1)
    again = run(stream(bootstrap, topic), tmp_path, availableNow=True)
    assert again.awaitTermination(90)
    assert numbers(spark, tmp_path / "out") == list(range(130))


def test_a_stream_goes_on_when_its_broker_restarts(spark, stream, make_broker, tmp_path):
    from confluent_kafka import Producer

    broker = make_broker({"num.partitions": "2"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})

    def send(first, last):
        for number in range(first, last):
            producer.produce("restarted", b"%d" % number)
        assert producer.flush(60) == 0

    send(0, 100)
    query = run(stream(broker.bootstrap, "restarted"), tmp_path, processingTime="0 seconds")
    try:
        query.processAllAvailable()
        broker.stop()
        broker.start()
        send(100, 200)
        query.processAllAvailable()
        assert query.isActive
    finally:
        query.stop()
    assert numbers(spark, tmp_path / "out") == list(range(200))


def test_progress_tells_how_far_behind_a_query_is(stream, bootstrap, make_topic, produce, tmp_path):
    topic = make_topic()
    produce(topic, [b"%d" % n for n in range(30)])
    query = run(stream(bootstrap, topic, maxOffsetsPerTrigger="20"), tmp_path, availableNow=True)
    assert query.awaitTermination(90)
    source = query.recentProgress[0].sources[0]
    assert f'"{topic}": {{"0": 20}}' in source.endOffset
    assert f'"{topic}": {{"0": 30}}' in source.latestOffset

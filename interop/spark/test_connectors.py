"""What one connector writes the other reads, on Headrace and on Apache Kafka."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]


def read(
    spark: SparkSession, connector: str, address: str, topic: str, **options: str
) -> list[tuple[object, ...]]:
    frame = (
        spark.read.format(connector)
        .options(
            **{"kafka.bootstrap.servers": address, "subscribe": topic, "includeHeaders": "true", **options}
        )
        .load()
    )
    assert frame.columns == COLUMNS
    return [tuple(row) for row in frame.orderBy("partition", "offset").collect()]


def rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr(
        "if(id % 7 = 0, null, encode(cast(id % 10 as string), 'utf-8')) as key",
        "if(id % 11 = 0, null, encode(concat('value-', id), 'utf-8')) as value",
        "if(id % 3 = 0, array(named_struct('key', 'n', 'value', encode(cast(id as string), 'utf-8'))), null) as headers",
    )


@pytest.mark.parametrize("writer", ["headrace", "kafka"])
def test_a_batch_written_by_one_is_read_alike_by_both(spark: SparkSession, address: str, writer: str) -> None:
    topic = f"batch-by-{writer}"
    options = {"kafka.bootstrap.servers": address, "topic": topic, "includeHeaders": "true"}
    rows(spark, 500).write.format(writer).options(**options).mode("append").save()
    found = read(spark, "headrace", address, topic)
    assert len(found) == 500
    assert found == read(spark, "kafka", address, topic)


@pytest.mark.parametrize(
    ("reader", "writer"), [("kafka", "headrace"), ("headrace", "kafka"), ("headrace", "headrace")]
)
def test_a_stream_through_spark_loses_and_doubles_nothing(
    spark: SparkSession, address: str, reader: str, writer: str, tmp_path: Path
) -> None:
    source, target = f"in-{reader}-{writer}", f"out-{reader}-{writer}"
    options = {"kafka.bootstrap.servers": address}
    rows(spark, 300).write.format("kafka").options(topic=source, **options).mode("append").save()
    stream = (
        spark.readStream.format(reader)
        .options(subscribe=source, startingOffsets="earliest", **options)
        .load()
    )
    query = (
        stream.select("key", "value")
        .writeStream.format(writer)
        .options(topic=target, checkpointLocation=str(tmp_path / "checkpoint"), **options)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    committed = {"kafka.isolation.level": "read_committed"}
    sent = sorted((row[:2] for row in read(spark, "kafka", address, source)), key=repr)
    for connector in ("kafka", "headrace"):
        assert (
            sorted((row[:2] for row in read(spark, connector, address, target, **committed)), key=repr)
            == sent
        )

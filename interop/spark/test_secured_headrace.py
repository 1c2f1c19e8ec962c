"""Spark on a secured Headrace cluster of three: Headrace's data source and Spark's own connector, with a user's permissions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from interop.kafka.secured import Login, SecuredCluster

ADA = Login("ada")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    made = SecuredCluster(tmp_path_factory.mktemp("secured"))
    try:
        made.await_ready()
        for user in ("ada", "eve"):
            made.add_user(user)
        made.allow("ada", "--operation", "All", "--topic", "spark-", prefixed=True)
        # What docs/spark.md names for a stream's sink, which writes in transactions.
        ids, ledger = ("--transactional-id", "headrace-spark-"), ("--topic", "__headrace_spark_ledger")
        made.allow("ada", *_operations("Write", "Describe"), *ids, prefixed=True)
        made.allow("ada", *_operations("Read", "Write", "Describe", "Create"), *ledger)
        yield made
    finally:
        made.process.stop()


def _operations(*names: str) -> list[str]:
    return [part for name in names for part in ("--operation", name)]


def options(cluster: SecuredCluster, login: Login = ADA) -> dict[str, str]:
    given = {"bootstrap.servers": cluster.bootstrap, **cluster.settings(login)}
    return {f"kafka.{name}": value for name, value in given.items()}


def values(spark: SparkSession, connector: str, cluster: SecuredCluster, topic: str) -> list[str]:
    committed = {"kafka.isolation.level": "read_committed", "subscribe": topic}
    frame = spark.read.format(connector).options(**options(cluster), **committed).load()
    return sorted(row.value for row in frame.selectExpr("cast(value as string) as value").collect())


def test_batches_and_a_stream_go_through_with_a_login(
    spark: SparkSession, cluster: SecuredCluster, tmp_path: Path
) -> None:
    cluster.create("spark-in", "spark-out", partitions=3)
    rows = spark.range(300).selectExpr("cast(id as string) as key", "concat('value-', id) as value")
    rows.write.format("headrace").options(**options(cluster), topic="spark-in").mode("append").save()
    sent = sorted(f"value-{number}" for number in range(300))
    assert values(spark, "headrace", cluster, "spark-in") == sent
    stream = spark.readStream.format("headrace").options(
        **options(cluster), subscribe="spark-in", startingOffsets="earliest"
    )
    query = (
        stream.load()
        .select("key", "value")
        .writeStream.format("headrace")
        .options(**options(cluster), topic="spark-out", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    for connector in ("headrace", "kafka"):
        assert values(spark, connector, cluster, "spark-out") == sent


def test_a_user_without_permission_is_told_so(spark: SparkSession, cluster: SecuredCluster) -> None:
    cluster.create("spark-guarded")
    guarded = options(cluster, Login("eve"))
    with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
        spark.read.format("headrace").options(**guarded, subscribe="spark-guarded").load().collect()


def test_a_wrong_password_is_told_as_such(spark: SparkSession, cluster: SecuredCluster) -> None:
    wrong = options(cluster, Login("ada", password="a guess"))
    with pytest.raises(Exception, match="refused the login of 'ada'"):
        spark.read.format("headrace").options(**wrong, subscribe="spark-guarded").load().collect()

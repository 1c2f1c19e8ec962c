"""Spark and connectors on a secured Headrace cluster of three: Headrace's data source, Spark's own connector, and `headrace
connect`, each with a user's permissions."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from pyspark.sql import SparkSession

from bench.processes import Watched, free_port
from interop.kafka.programs import ProgramFailed, finish
from interop.kafka.secured import PASSWORD, Login, SecuredCluster
from tests.waiting import until

ADA = Login("ada")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    made = SecuredCluster(tmp_path_factory.mktemp("secured"))
    try:
        made.await_ready()
        for user in ("ada", "eve", "mover"):
            made.add_user(user)
        made.allow("ada", "--operation", "All", "--topic", "spark-", prefixed=True)
        # What docs/spark.md names for a stream's sink, which writes in transactions.
        ids, ledger = ("--transactional-id", "headrace-spark-"), ("--topic", "__headrace_spark_ledger")
        made.allow("ada", *_operations("Write", "Describe"), *ids, prefixed=True)
        made.allow("ada", *_operations("Read", "Write", "Describe", "Create"), *ledger)
        # What docs/connectors.md names for connectors: for sources the same, for sinks their topic and their group.
        made.allow("mover", *_operations("Read", "Write", "Describe"), "--topic", "moved-", prefixed=True)
        made.allow("mover", *_operations("Write", "Describe"), *ids, prefixed=True)
        made.allow("mover", *_operations("Read", "Write", "Describe", "Create"), *ledger)
        made.allow("mover", *_operations("Read"), "--group", "connect-", prefixed=True)
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


def connector(
    cluster: SecuredCluster, name: str, topic: str, end: str, schema: str = "", login: str = "mover"
) -> str:
    """A connector's file; the password stays in the environment."""
    settings = {**cluster.settings(Login(login, password="${MOVERS_PASSWORD}"))}
    client = ", ".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in settings.items())
    fields = f"schema = {json.dumps(schema)}\n" if schema else ""
    return (
        f'name = "{name}"\n[topic]\nname = "{topic}"\nbootstrap = "{cluster.bootstrap}"\n'
        f"client = {{{client}}}\n{fields}{end}\n"
    )


def connect(home: Path, *arguments: str) -> list[str]:
    return [
        str(Path(sys.executable).with_name("headrace")),
        "connect",
        *arguments,
        "--state",
        str(home / "state"),
    ]


def test_connectors_move_files_through_a_topic_into_a_database(
    cluster: SecuredCluster, tmp_path: Path
) -> None:
    cluster.create("moved-orders", partitions=3)
    folder, database = tmp_path / "in", tmp_path / "shop.db"
    folder.mkdir()
    lines = "".join(json.dumps({"id": number, "item": f"item {number}"}) + "\n" for number in range(200))
    (folder / "orders.json").write_text(lines)
    source = f'[source]\ntype = "files"\npath = "{folder}/*.json"\nformat = "json"'
    sink = f'[sink]\ntype = "sql"\nurl = "sqlite:///{database}"\ntable = "orders"\nkey = "id"\ncreate = true'
    (tmp_path / "in.toml").write_text(connector(cluster, "in", "moved-orders", source))
    (tmp_path / "out.toml").write_text(
        connector(cluster, "out", "moved-orders", sink, "id BIGINT, item STRING")
    )
    env = {"MOVERS_PASSWORD": PASSWORD}
    for name in ("in", "out"):
        finish(connect(tmp_path, "check", str(tmp_path / f"{name}.toml"))[:-2], env=env, limit=120)
        command = connect(tmp_path, "run", str(tmp_path / f"{name}.toml"), "--once", "-m", "local[2]")
        finish(command, env=env, limit=240)
    with sqlite3.connect(database) as opened:
        rows = opened.execute("SELECT id, item FROM orders ORDER BY id").fetchall()
    assert rows == [(number, f"item {number}") for number in range(200)]


def test_an_http_endpoint_writes_with_its_login(
    cluster: SecuredCluster, spark: SparkSession, tmp_path: Path
) -> None:
    cluster.create("moved-posted")
    port = free_port()
    source = f'[source]\ntype = "http-endpoint"\nlisten = "127.0.0.1:{port}"'
    (tmp_path / "gate.toml").write_text(connector(cluster, "gate", "moved-posted", source))
    command = connect(tmp_path, "run", str(tmp_path / "gate.toml"))
    gate = Watched(command, tmp_path / "gate.out", env={"MOVERS_PASSWORD": PASSWORD})
    try:
        until(lambda: _posted(gate, port), "the endpoint answers", 120)
    finally:
        gate.stop()
    mover = options(cluster, Login("mover"))
    frame = spark.read.format("headrace").options(**mover, subscribe="moved-posted").load()
    assert [bytes(row.value) for row in frame.collect()] == [b'{"id":7}']


def _posted(gate: Watched, port: int) -> bool:
    gate.check()
    try:
        answer = urllib3.request("POST", f"http://127.0.0.1:{port}/", json={"id": 7}, retries=False)
    except urllib3.exceptions.HTTPError:
        return False
    assert answer.status == 200, answer.data
    return True


def test_a_connector_with_a_wrong_password_is_told_so_in_one_sentence(
    cluster: SecuredCluster, tmp_path: Path
) -> None:
    sink = f'[sink]\ntype = "files"\npath = "{tmp_path}"'
    (tmp_path / "out.toml").write_text(connector(cluster, "out", "moved-orders", sink))
    command = connect(tmp_path, "check", str(tmp_path / "out.toml"))[:-2]
    with pytest.raises(ProgramFailed, match="Authentication failed"):
        finish(command, env={"MOVERS_PASSWORD": "a guess"}, limit=120)


def test_a_user_without_permission_is_told_so(spark: SparkSession, cluster: SecuredCluster) -> None:
    cluster.create("spark-guarded")
    guarded = options(cluster, Login("eve"))
    with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
        spark.read.format("headrace").options(**guarded, subscribe="spark-guarded").load().collect()


def test_a_wrong_password_is_told_as_such(spark: SparkSession, cluster: SecuredCluster) -> None:
    wrong = options(cluster, Login("ada", password="a guess"))
    with pytest.raises(Exception, match="refused the login of 'ada'"):
        spark.read.format("headrace").options(**wrong, subscribe="spark-guarded").load().collect()

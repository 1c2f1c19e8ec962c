"""A run that is killed while transactions are open, and a broker that restarts in the middle: nothing twice, nothing
missing, and nothing that readers of committed records have to wait for."""

import json
import os
import signal
from collections import Counter
from contextlib import closing

import pytest

from headrace.client import Producer
from headrace.link.cluster import Cluster
from headrace.spark.settings import kafka_settings
from headrace.spark.sink_transactions import SinkTransactions

FIRST, COUNT = 900, 1200


@pytest.fixture
def transactions(own_broker):
    with closing(Cluster(kafka_settings({"kafka.bootstrap.servers": own_broker.bootstrap}))) as cluster:
        yield SinkTransactions(cluster)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_when_a_run_is_killed_and_a_broker_restarts(
    write_doubling, own_broker, own_cluster, commands, transactions
):
    own_cluster.create("numbers", "doubled", partitions=2)
    own_cluster.send("numbers", b"poison", *({"n": n} for n in range(FIRST)))
    root = write_doubling("crashing")

    def written():
        return len(own_cluster.records("doubled"))

    def sums():
        return {row["last"]: row["total"] for row in own_cluster.rows("sums")}

    def letters():
        return [letter.raw_value for letter in own_cluster.records("numbers.dlq")]

    def left_open():
        return transactions.open_ids("headrace-spark-")

    def status():
        return json.loads(commands.ask(root, "status", "--json"))[0]

    first = commands.start(root, "run", "--interval", "0s")
    commands.wait(lambda: written() > 0, first)
    commands.wait(left_open, first, pause=0)
    commands.kill(first)
    assert status()["state"] == "died"

    second = commands.start(root, "run", "--interval", "0s")
    commands.wait(lambda: written() >= FIRST, second)
    own_cluster.send("numbers", *({"n": n} for n in range(FIRST, COUNT)))
    commands.wait(lambda: written() > FIRST, second)
    own_broker.kill()
    commands.wait(lambda: {flow["state"] for flow in status()["flows"]} == {"waiting"}, second)
    own_broker.start()
    totals = {last: sum(range(last, COUNT, 10)) for last in range(10)}
    commands.wait(lambda: written() >= COUNT and sums() == totals and letters(), second)
    assert commands.ask(root, "stop") == "stopped\n"
    assert second.wait(60) == 0

    assert Counter(row["n"] for row in own_cluster.rows("doubled")) == Counter(range(COUNT))
    assert letters() == [b"poison"]
    assert left_open() == []
    look = status()
    assert look["state"] == "stopped"
    assert {flow["flow"] for flow in look["flows"]} == {"doubled", "sums", "numbers_dead_letters"}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("end", "code"),
    [
        pytest.param(lambda running: running.stdout.close(), 141, id="as head does"),
        pytest.param(lambda running: os.killpg(running.pid, signal.SIGTERM), 143, id="as systemd does"),
    ],
)
def test_a_run_that_is_stopped_in_the_middle_of_a_batch_leaves_nothing_open(
    write_project, own_cluster, commands, transactions, end, code
):
    flow = """
        import time

        from pyspark.sql import functions as F

        from headrace import pipelines as hp

        numbers = hp.topic("numbers", "n BIGINT")

        @F.udf("bigint")
        def slowly(n):
            time.sleep(3600 if n else 0)
            return n

        @hp.topic("copied")
        def copied():
            return numbers.stream().select(slowly("n").alias("n"))
    """
    own_cluster.create("numbers", partitions=2)
    with Producer(own_cluster.bootstrap) as producer:
        for n in (0, 1):  # one task is done at once, the other never
            producer.send("numbers", b'{"n":%d}' % n, partition=n)
    root = write_project({"flow.py": flow}, "stopping")
    running = commands.start(root, "run", "--master", "local[2]", "--json")
    commands.wait(lambda: transactions.open_ids("headrace-spark-"), running)
    end(running)
    assert running.wait(60) == code
    assert json.loads(commands.ask(root, "status", "--json"))[0]["state"] == "stopped"
    assert transactions.open_ids("headrace-spark-") == []
    assert own_cluster.records("copied") == []

"""Streams write exactly once: workers and whole drivers are killed with SIGKILL at every step of a batch.

A proxy stands before the broker, reads what the job sends and kills whoever sent it: before the request reaches the
broker, or after. Then the query is started again from its checkpoint, its rows split among another number of tasks.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import StreamingQueryException

from headrace.spark.ledger import TOPIC as LEDGER
from headrace.testing.broker import BrokerThread
from headrace.testing.process import BrokerProcess

PRODUCE, INIT_PRODUCER_ID, END_TXN, DESCRIBE_TRANSACTIONS = 0, 22, 26, 65
PARTITIONS = 3
LAST = b"59"
"""The last row of the second batch."""


class Front:
    """The broker's advertised address. `deadly(key, frame)` says which request costs its sender its life."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.broker_port = 0
        self.deadly = None
        self.forwarded = False
        self.kill = kill_client
        self.kills = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, deadly, forwarded):
        self.deadly, self.forwarded = deadly, forwarded

    def _accept(self):
        while True:
            try:
                client, address = self.server.accept()
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
            except ConnectionError:
                client.close()
                continue
            except OSError:
                return
            doomed = threading.Event()
            for source, target, sender in ((client, broker, address[1]), (broker, client, None)):
                threading.Thread(
                    target=self._carry, args=(source, target, sender, doomed), daemon=True
                ).start()

    def _carry(self, source, target, sender, doomed):
        try:
            while (frame := read_frame(source)) is not None:
                if doomed.is_set():
                    return  # the answer must not come before the end
                if sender is not None and self._is_deadly(frame):
                    doomed.set()
                    if self.forwarded:
                        target.sendall(frame)
                    self.kill(sender)
                    break
                target.sendall(frame)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _is_deadly(self, frame):
        with self._lock:
            if self.deadly is None or not self.deadly(struct.unpack_from(">h", frame, 4)[0], frame):
                return False
            self.deadly = None
            self.kills += 1
            return True


def read_frame(source):
    head = source.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    return head + source.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)


def kill_client(port):
    """The process at the other end of a connection, which is known by its port; a child being forked may share it for a moment."""
    pids = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.laddr.port == port and connection.raddr and connection.pid not in (None, os.getpid())
    }
    assert pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], 10)


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    front = Front()
    settings = {"advertised.listeners": f"PLAINTEXT://{front.bootstrap}"}
    broker = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    front.broker_port = broker.port
    yield front
    broker.stop()
    front.server.close()


@pytest.fixture(scope="module")
def bootstrap(front):
    return front.bootstrap


def committed(bootstrap, topic):
    """How often each value is there for a reader of committed records, to the end of every partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found, ended = Counter(), set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, "the broker has fallen silent, or a transaction was left open"
        if message.error():
            ended.add(message.partition())
        else:
            found[message.value()] += 1
    consumer.close()
    return found


@pytest.fixture
def counting(spark, bootstrap, tmp_path):
    """A query that counts on by 30 in every batch; each start splits the rows among another number of tasks."""
    starts = 0

    def start(target, **options):
        nonlocal starts
        starts += 1
        rows = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", 30)
            .load()
            .selectExpr("cast(value as string) key", "cast(value as string) value")
            .repartition(1 + starts % 3)
        )
        return (
            rows.writeStream.format("headrace")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .options(**options)
            .trigger(availableNow=True)
            .start()
        )

    return start


def assert_each_once(found, at_least):
    """Every number from 0 to the end of some batch, each of them once."""
    assert found == Counter({b"%d" % number: 1 for number in range(len(found))})
    assert len(found) % 30 == 0
    assert len(found) >= at_least


def sent(key, to_ledger=None):
    """Requests of one kind; of produce requests those to the ledger, or the others."""

    def matches(api, frame):
        if api != key:
            return False
        return to_ledger is None or (LEDGER.encode() in frame) is to_ledger

    return matches


STAGES = {
    "a task begins its transaction": (sent(INIT_PRODUCER_ID), True),
    "a task's rows do not arrive": (sent(PRODUCE, to_ledger=False), False),
    "a task's rows arrive": (sent(PRODUCE, to_ledger=False), True),
    "the driver looks whether all is there": (sent(DESCRIBE_TRANSACTIONS), True),
    "the list is not recorded": (sent(PRODUCE, to_ledger=True), False),
    "the list is recorded": (sent(PRODUCE, to_ledger=True), True),
    "nothing is committed": (sent(END_TXN), False),
    "the first transaction is committed": (sent(END_TXN), True),
}


@pytest.mark.timeout(600)
def test_workers_killed_at_every_stage_of_a_batch_lose_and_double_nothing(front, make_topic, counting):
    target = make_topic(PARTITIONS)
    for number, (stage, (deadly, forwarded)) in enumerate(STAGES.items()):
        while front.kills < 50:
            front.arm(deadly, forwarded)
            try:
                counting(target).awaitTermination()
            except StreamingQueryException:
                break
            # A task of the run before, cancelled but not yet gone, was hit instead of one of this run.
        assert number < front.kills < 50, stage
    counting(target).awaitTermination()
    assert_each_once(committed(front.bootstrap, target), at_least=60)


def test_batches_follow_each_other_with_and_without_exactly_once(bootstrap, make_topic, counting):
    target = make_topic(PARTITIONS)
    counting(target).awaitTermination()
    counting(target).awaitTermination()
    counting(target, exactlyOnce="false").awaitTermination()
    assert_each_once(committed(bootstrap, target), at_least=90)


def test_output_mode_complete_appends_the_whole_result_each_time(spark, bootstrap, make_topic, tmp_path):
    target = make_topic(PARTITIONS)
    for result in (Counter({b"30": 1}), Counter({b"30": 1, b"60": 1})):
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 30).load()
        writer = (
            rows.groupBy()
            .count()
            .selectExpr("cast(count as string) value")
            .writeStream.format("headrace")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        writer.outputMode("complete").trigger(availableNow=True).start().awaitTermination()
        assert committed(bootstrap, target) == result


@pytest.mark.timeout(600)
def test_a_driver_and_a_broker_killed_lose_and_double_nothing(tmp_path):
    front = Front()
    broker = BrokerProcess(
        tmp_path / "broker", {"advertised.listeners": f"PLAINTEXT://{front.bootstrap}"}
    ).start()
    front.broker_port = broker.port
    admin = AdminClient({"bootstrap.servers": front.bootstrap})
    admin.create_topics([NewTopic("target", PARTITIONS)])["target"].result(30)

    def job(tasks):
        program = [sys.executable, str(Path(__file__).with_name("counting_job.py"))]
        program += [front.bootstrap, str(tmp_path / "checkpoint"), str(tasks)]
        with (tmp_path / "job.log").open("ab") as log:
            return subprocess.Popen(program, stdout=log, stderr=log, start_new_session=True)

    def kill_job(_):
        os.killpg(running.pid, signal.SIGKILL)

    try:
        # The driver dies between recording its list and the first commit; nobody cleans up after it.
        front.kill = kill_job
        front.arm(sent(END_TXN), False)
        running = job(2)
        assert running.wait(300) == -signal.SIGKILL, (tmp_path / "job.log").read_text()[-3000:]
        assert front.kills == 1
        # Its successor finds the list; then the broker dies as the next batch's rows arrive, and comes back.
        rows_arriving = threading.Event()
        front.kill = lambda _: rows_arriving.set()
        front.arm(lambda api, frame: api == PRODUCE and LAST in frame, True)
        running = job(3)
        assert rows_arriving.wait(300)
        broker.kill()
        broker.start()
        assert running.wait(300) == 0, (tmp_path / "job.log").read_text()[-3000:]
        assert_each_once(committed(front.bootstrap, "target"), at_least=60)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        broker.kill()
        front.server.close()

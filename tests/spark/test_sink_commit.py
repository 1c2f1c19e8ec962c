"""A batch of a stream is committed once, whenever its driver dies, whoever finishes it, however rows are split again.

Drivers are processes of their own, killed with SIGKILL before or after any request they send; tasks are simulated by
writing in transactions as the sink does. Counting is done by an ordinary consumer of committed records.
"""

import dataclasses
import json
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.link.blocking import Connection
from headrace.link.cluster import Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.spark import ledger, sink_leftovers
from headrace.spark.ledger import Entry, Ledger, decided
from headrace.spark.settings import kafka_settings
from headrace.spark.sink_commit import BatchCommit, settle
from headrace.spark.sink_leftovers import transactional_id
from headrace.spark.sink_options import WriteOptions
from headrace.spark.sink_producer import SinkProducer
from headrace.spark.sink_rows import RowWriter
from headrace.spark.sink_transactions import ProducerIdentity, SinkTransactions, TransactionState
from headrace.testing.wire import WireClient
from headrace.wire.errors import KafkaError
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

TIMEOUT_MS = 60_000
PARTITIONS = 3


class Job:
    """A streaming query's tasks and driver, without Spark."""

    def __init__(self, bootstrap, query, timeout_ms=TIMEOUT_MS):
        self.bootstrap, self.topic, self.timeout_ms, self.query = bootstrap, query, timeout_ms, query
        self.settings = kafka_settings({"kafka.bootstrap.servers": bootstrap})
        self.cluster = Cluster(self.settings)
        self.transactions = SinkTransactions(self.cluster)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(query, PARTITIONS)])[query].result(30)

    def write(self, run, rows, tasks, attempt=0, query=None):
        """The rows in `tasks` open transactions."""
        options = WriteOptions(self.settings, ("key", "value"), self.topic)
        identities = []
        for task in range(tasks):
            identity = self.transactions.begin(
                transactional_id(query or self.query, run, task, attempt), self.timeout_ms
            )
            producer = SinkProducer(self.cluster, options, identity, self.transactions)
            part = [row.encode() for row in rows[task::tasks]]
            batch = pa.record_batch([pa.array(part), pa.array(part)], ["key", "value"])
            RowWriter(self.cluster, options, producer).write([batch])
            identities.append(identity)
        return identities

    def commit(self, run, batch, identities, **options):
        ledger._views.clear()  # as a new process would begin
        BatchCommit(self.cluster, self.query, run, self.timeout_ms).commit(batch, identities, **options)

    def committed(self):
        """What a reader of committed records sees, to the end of every partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])
        found, ended = [], set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None, "the broker has fallen silent"
            if message.error():
                ended.add(message.partition())
            else:
                found.append(message.value().decode())
        consumer.close()
        return sorted(found)


@pytest.fixture(params=[1, 2], ids=["explicit", "implicit"])
def protocol(request, broker):
    """Both generations of the transaction protocol (KIP-890)."""
    with WireClient(broker.bootstrap) as client:
        kind = 1 if request.param == 2 else 2
        update = FeatureUpdateKey("transaction.version", request.param, upgrade_type=kind)
        client.call(UpdateFeaturesRequest(60_000, [update], False), 2)
    return request.param


@pytest.fixture
def job(broker, protocol, request):
    made = Job(broker.bootstrap, request.node.name.replace("[", "-").replace("]", ""))
    assert made.transactions.implicit is (protocol == 2)
    yield made
    made.cluster.close()


def rows_of(batch):
    return [f"{batch}-{number}" for number in range(20)]


@pytest.fixture
def drivers(job):
    """`drivers(run, batch, identities, deadly, sent)`: the exit code of a driver that kills itself on the way."""
    program = [sys.executable, str(Path(__file__).with_name("sink_drivers.py"))]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:

        def drive(run, batch, identities, deadly, sent):
            told = {
                "bootstrap": job.bootstrap,
                "query": job.query,
                "run": run,
                "batch": batch,
                "timeout_ms": job.timeout_ms,
                "identities": [dataclasses.astuple(identity) for identity in identities],
                "deadly": deadly,
                "sent": sent,
            }
            print(json.dumps(told), file=nursery.stdin, flush=True)
            return int(nursery.stdout.readline())

        yield drive
        nursery.stdin.close()


def test_a_batch_that_was_recorded_stands_although_it_comes_again_without_rows(job):
    rows = rows_of(0)
    recorded = job.write("run-1", rows, tasks=2)
    book = Ledger(job.cluster, job.query)
    book.append(Entry(job.query, "run-1", 0, tuple(recorded)), book.read())  # and the driver died
    assert job.committed() == []
    ledger._views.clear()
    BatchCommit(job.cluster, job.query, "run-2", job.timeout_ms).finish(0)
    assert job.committed() == sorted(rows)
    BatchCommit(job.cluster, job.query, "run-2", job.timeout_ms).finish(1)
    assert job.committed() == sorted(rows)


def test_a_driver_killed_at_any_request_loses_and_doubles_nothing(job, drivers):
    batch = 0
    while True:
        sent, number = batch % 2 == 1, batch // 2 + 1
        first = job.write(f"run-{batch}", rows_of(batch), tasks=3)
        code = drivers(f"run-{batch}", batch, first, number, sent)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        # Spark starts the query again: the same batch, another run, its rows split among other tasks.
        again = job.write(f"again-{batch}", rows_of(batch), tasks=2)
        job.commit(f"again-{batch}", batch, again)
        states = job.transactions.states([*first, *again])
        assert TransactionState.OPEN not in states.values(), (
            "readers would wait for a transaction that nobody ends"
        )
        batch += 1
    assert batch >= 20, "a commit takes several requests, and each of them was deadly twice"
    assert job.committed() == sorted(row for number in range(batch + 1) for row in rows_of(number))


def test_batches_of_a_run_follow_each_other_and_reuse_its_transactional_ids(job):
    for batch in range(4):
        job.commit("run", batch, job.write("run", rows_of(batch), tasks=2))
    assert job.committed() == sorted(row for batch in range(4) for row in rows_of(batch))


def test_a_batch_older_than_the_last_is_not_written_again(job):
    for batch in range(2):
        job.commit("one", batch, job.write("one", rows_of(batch), tasks=2))
    job.commit("two", 0, job.write("two", rows_of(0), tasks=3))
    assert job.committed() == sorted(rows_of(0) + rows_of(1))


def test_a_second_write_of_a_batch_is_refused_and_never_dropped_in_silence(job):
    for run in ("one", "two"):
        job.commit(run, 0, job.write(run, rows_of(0), tasks=2))
        with pytest.raises(KafkaError, match="write once in foreachBatch"):
            job.commit(run, 0, job.write(run, ["more"], tasks=1))
    assert job.committed() == sorted(rows_of(0))


def test_of_two_runs_that_commit_the_same_batch_at_once_one_wins(job):
    for batch in range(5):
        written = [job.write(f"{side}-{batch}", rows_of(batch), tasks=2) for side in ("left", "right")]
        together = threading.Barrier(2)

        def drive(side, identities, batch=batch, together=together):
            cluster = Cluster(job.settings)
            together.wait()
            BatchCommit(cluster, job.query, f"{side}-{batch}", TIMEOUT_MS).commit(batch, identities)
            cluster.close()

        threads = [
            threading.Thread(target=drive, args=arguments)
            for arguments in zip(("left", "right"), written, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert job.committed() == sorted(row for batch in range(5) for row in rows_of(batch))


def test_a_driver_that_was_overtaken_hears_that_its_batch_is_written(job, monkeypatch, caplog):
    mine = job.write("slow", rows_of(0), tasks=2)
    theirs = job.write("quick", rows_of(0), tasks=3)
    read = Ledger.read

    def read_and_be_overtaken(self):
        view = read(self)
        monkeypatch.undo()
        job.commit("quick", 0, theirs)  # which aborts what other runs have open
        return view

    monkeypatch.setattr(Ledger, "read", read_and_be_overtaken)
    job.commit("slow", 0, mine)
    assert "was written before: nothing is added" in caplog.text
    job.commit("slow", 1, job.write("slow", rows_of(1), tasks=1))
    assert job.committed() == sorted(rows_of(0) + rows_of(1))


def test_what_dead_tasks_left_open_is_aborted_by_the_next_commit(job):
    orphans = job.write("dead", ["orphan"] * 4, tasks=2)
    job.commit("run", 0, job.write("run", rows_of(0), tasks=2))
    failed = job.write("run", ["of a task that was run again"], tasks=1, attempt=1)
    job.commit("run", 1, job.write("run", rows_of(1), tasks=2), repeated=True)
    assert set(job.transactions.states([*orphans, *failed]).values()) == {TransactionState.ABORTED}
    assert job.committed() == sorted(rows_of(0) + rows_of(1))


def test_what_a_dead_run_left_open_is_aborted_by_a_batch_without_rows(job):
    job.commit("dead", 0, job.write("dead", rows_of(0), tasks=2))
    orphans = job.write("dead", ["orphan"] * 4, tasks=2)  # of the next batch, under the same ids
    BatchCommit(job.cluster, job.query, "run", TIMEOUT_MS).finish(1)
    assert set(job.transactions.states(orphans).values()) == {TransactionState.ABORTED}
    assert job.committed() == sorted(rows_of(0))


def test_what_could_not_be_aborted_while_brokers_were_away_is_aborted_by_a_later_batch(job, monkeypatch):
    monkeypatch.setattr(sink_leftovers, "_AFTER_TROUBLE", 0)
    orphans = job.write("dead", ["orphan"] * 4, tasks=2)
    hasty = kafka_settings({"kafka.bootstrap.servers": job.bootstrap, "kafka.default.api.timeout.ms": "500"})
    really_send = Connection.send

    def send(connection, request, version):
        if isinstance(request, ListTransactionsRequest):
            raise BrokerUnavailable("nobody is there")
        return really_send(connection, request, version)

    with closing(Cluster(hasty)) as cluster:
        driver = BatchCommit(cluster, job.query, "run", TIMEOUT_MS)
        with monkeypatch.context() as away:
            away.setattr(Connection, "send", send)
            driver.commit(0, job.write("run", rows_of(0), tasks=2))
        assert set(job.transactions.states(orphans).values()) == {TransactionState.OPEN}
        driver.commit(1, job.write("run", rows_of(1), tasks=2))
    assert set(job.transactions.states(orphans).values()) == {TransactionState.ABORTED}
    assert job.committed() == sorted(rows_of(0) + rows_of(1))


def test_what_a_task_begins_after_the_death_of_its_driver_is_aborted_by_a_later_batch(job, monkeypatch):
    monkeypatch.setattr(sink_leftovers, "_BETWEEN_LOOKS", 0)
    job.commit("run", 0, job.write("run", rows_of(0), tasks=2))
    late = job.write("dead", ["orphan"] * 4, tasks=2)
    job.commit("run", 1, job.write("run", rows_of(1), tasks=2))
    assert set(job.transactions.states(late).values()) == {TransactionState.ABORTED}
    assert job.committed() == sorted(rows_of(0) + rows_of(1))


def test_of_a_query_that_was_stopped_the_recorded_batch_is_committed_and_the_rest_aborted(job):
    job.commit("run", 0, job.write("run", rows_of(0), tasks=2))
    recorded = job.write("run", rows_of(1), tasks=2)
    record(job, "run", 1, recorded)
    orphans = job.write("run", ["orphan"] * 4, tasks=2, attempt=1)
    other = job.write("run", ["of a query that runs"], tasks=1, query="other")
    settle(job.cluster, [job.query])
    assert job.transactions.states(recorded + orphans + other) == {
        **dict.fromkeys(recorded, TransactionState.COMMITTED),
        **dict.fromkeys(orphans, TransactionState.ABORTED),
        **dict.fromkeys(other, TransactionState.OPEN),
    }
    orphans = job.write("run", ["orphan"] * 4, tasks=2)  # of the next batch, under the ids of the last
    settle(job.cluster, [job.query])
    assert set(job.transactions.states(orphans).values()) == {TransactionState.ABORTED}
    job.transactions.end(other, commit=False)
    job.commit("again", 1, job.write("again", rows_of(1), tasks=3))
    assert job.committed() == sorted(rows_of(0) + rows_of(1))


def test_a_failed_batch_is_aborted_with_what_its_tasks_did_not_tell_of(job):
    told, untold = job.write("run", ["told"], tasks=1), job.write("run", ["untold"], tasks=1, attempt=1)
    BatchCommit(job.cluster, job.query, "run", TIMEOUT_MS).abort(told, 2)
    assert set(job.transactions.states([*told, *untold]).values()) == {TransactionState.ABORTED}
    assert job.committed() == []


def test_a_batch_whose_transactions_have_expired_is_refused_whole(job):
    written = job.write("run", rows_of(0), tasks=2)
    job.transactions.take_over([written[0].transactional_id], TIMEOUT_MS)  # as its timeout would have it
    with pytest.raises(
        KafkaError, match=r"raise kafka\.transaction\.timeout\.ms .* Nothing of the batch was written"
    ):
        job.commit("run", 0, written)
    job.commit("again", 0, job.write("again", rows_of(0), tasks=3))
    assert job.committed() == sorted(rows_of(0))


def test_a_recorded_list_that_has_expired_whole_is_replaced(job):
    written = job.write("run", rows_of(0), tasks=2)
    record(job, "run", 0, written)
    job.transactions.take_over([identity.transactional_id for identity in written], TIMEOUT_MS)
    job.commit("again", 0, job.write("again", rows_of(0), tasks=3))
    assert job.committed() == sorted(rows_of(0))
    job.commit("third", 0, job.write("third", rows_of(0), tasks=1))
    assert job.committed() == sorted(rows_of(0))


def test_a_recorded_list_of_which_a_part_expired_is_told_and_not_guessed(job):
    written = job.write("run", rows_of(0), tasks=2)
    record(job, "run", 0, written)
    job.transactions.end(written[:1], commit=True)
    job.transactions.take_over([written[1].transactional_id], TIMEOUT_MS)
    with pytest.raises(KafkaError, match=r"1 committed, 1 aborted.*exactlyOnce=false"):
        job.commit("again", 0, job.write("again", rows_of(0), tasks=3))


def record(job, run, batch, identities):
    """What a driver has done that died after recording a list and before committing any of it."""
    book = Ledger(job.cluster, job.query)
    book.append(Entry(job.query, run, batch, tuple(identities)), book.read())


def entry(run, batch, recorded, replaces=-1, finished=False):
    return Entry("q", run, batch, (ProducerIdentity(run, 1, 1),), finished, replaces, recorded)


def test_the_newest_batch_and_in_it_the_first_list_is_decided():
    def winner(*entries):
        found = decided({one.run: one for one in entries})
        return found and found.run

    assert winner() is None
    assert winner(entry("a", 1, 5), entry("b", 2, 3)) == "b"
    assert winner(entry("a", 2, 5), entry("b", 2, 3), entry("c", 2, 9)) == "b"
    assert winner(entry("a", 2, 3), entry("b", 2, 5), entry("c", 2, 7, replaces=3)) == "c"
    assert winner(entry("a", 2, 3), entry("c", 2, 7, replaces=3), entry("d", 2, 8, replaces=3)) == "c"
    assert winner(entry("a", 2, 3), entry("c", 2, 7, replaces=3), entry("d", 2, 8, replaces=7)) == "d"
    assert winner(entry("a", 2, 3), entry("b", 2, 3, finished=True)) == "b"

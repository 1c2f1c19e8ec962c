"""Outboxes: nothing that was accepted is skipped, whatever dies; what comes twice has the same id."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client import (
    Admin,
    BrokerError,
    ConfigError,
    DeliveryError,
    Record,
    TopicPartition,
    serializers,
)
from headrace.client.once import StoreUnavailable
from headrace.client.outbox import FileOutbox, OutboxError, Relay, SqlOutbox
from headrace.client.outbox.entry import Entry, decode, encode
from headrace.client.scan import scan
from headrace.testing.broker import BrokerThread

NewTopic = Callable[..., str]
ReadAll = Callable[..., list[Record]]
HERE = Path(__file__).parent
optional_bytes = st.none() | st.binary(max_size=50)


@settings(deadline=None, max_examples=50)
@given(
    entry=st.builds(
        Entry,
        id=st.text(max_size=20),
        topic=st.text(max_size=20),
        key=optional_bytes,
        value=optional_bytes,
        headers=st.lists(st.tuples(st.text(max_size=9), optional_bytes), max_size=3).map(tuple),
        partition=st.none() | st.integers(0, 2**31 - 1),
        timestamp=st.none() | st.integers(0, 2**62),
    )
)
def test_an_entry_comes_back_from_its_bytes(entry: Entry) -> None:
    assert decode(encode(entry)) == entry


def test_what_was_sent_waits_in_order_until_it_is_ticked_off(tmp_path: Path) -> None:
    with FileOutbox(tmp_path) as outbox:
        for number in range(5):
            outbox.send("t", str(number), headers={"a": "b"})
        first = outbox.pending(3)
        assert [entry.value for _, entry in first] == [b"0", b"1", b"2"]
        assert first[0][1].headers[0] == ("a", b"b")
        outbox.sent([handle for handle, _ in first[:2]])
        assert [entry.value for _, entry in outbox.pending(9)] == [b"2", b"3", b"4"]
    with FileOutbox(tmp_path) as again:
        assert [entry.value for _, entry in again.pending(9)] == [b"2", b"3", b"4"]
        assert len(again) == 3


def test_journals_roll_and_are_deleted_when_all_is_sent(tmp_path: Path) -> None:
    with FileOutbox(tmp_path, segment_bytes=300) as outbox:
        for number in range(50):
            outbox.send("t", str(number))
        assert len(list(tmp_path.glob("*.journal"))) > 5
        while batch := outbox.pending(7):
            outbox.sent([handle for handle, _ in batch])
        assert len(list(tmp_path.glob("*.journal"))) == 1
        outbox.send("t", "more")
    with FileOutbox(tmp_path) as again:
        assert [entry.value for _, entry in again.pending(9)] == [b"more"]


@settings(deadline=None, max_examples=50)
@given(cut=st.integers(1, 60), junk=st.binary(max_size=20))
def test_a_torn_end_is_cut_off_and_what_came_before_stays(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("outbox")
    with FileOutbox(folder) as outbox:
        outbox.send("t", "whole")
        outbox.send("t", "torn")
    [journal] = folder.glob("*.journal")
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) - cut] + junk)
    with FileOutbox(folder) as outbox:
        assert [entry.value for _, entry in outbox.pending(9)] == [b"whole"]
        outbox.send("t", "next")
        assert [entry.value for _, entry in outbox.pending(9)] == [b"whole", b"next"]


def test_damage_before_the_end_is_refused_with_the_place(tmp_path: Path) -> None:
    with FileOutbox(tmp_path) as outbox:
        outbox.send("t", "first")
        [(position, _)] = outbox.pending(9)
        outbox.send("t", "second")
        outbox.send("t", "third")
    [journal] = tmp_path.glob("*.journal")
    data = bytearray(journal.read_bytes())
    data[position.byte + 20] ^= 0xFF
    journal.write_bytes(data)
    with pytest.raises(OutboxError, match=f"damaged at byte {position.byte}"):
        FileOutbox(tmp_path)


def test_a_folder_belongs_to_one_at_a_time(tmp_path: Path) -> None:
    with FileOutbox(tmp_path), pytest.raises(OutboxError, match="in use by another process"):
        FileOutbox(tmp_path)
    FileOutbox(tmp_path).close()


def test_a_failed_fsync_is_told_and_nothing_more_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FileOutbox(tmp_path) as outbox:
        outbox.send("t", "safe")

        def fail(file: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fail)
            with pytest.raises(OutboxError, match="cannot be written"):
                outbox.send("t", "unsure")
        with pytest.raises(OutboxError, match="cannot be written"):
            outbox.send("t", "later")
        assert [entry.value for _, entry in outbox.pending(9)] == [b"safe"]


def test_a_failed_fsync_is_told_to_every_thread_that_waited_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of a lost page once; a second fsync would answer that all is well."""
    real, calls = os.fsync, []

    def fail_once(file: int) -> None:
        calls.append(file)
        if len(calls) > 1:
            real(file)
            return
        while outbox._written.byte < 3 * size:  # until the other thread has written, too
            time.sleep(0.001)
        raise OSError(5, "Input/output error")

    failures: list[BaseException] = []

    def send() -> None:
        try:
            outbox.send("t", "unsure")
        except OutboxError as error:
            failures.append(error)

    with FileOutbox(tmp_path) as outbox:
        outbox.send("t", "safe")
        size = outbox._written.byte
        monkeypatch.setattr(os, "fsync", fail_once)
        threads = [threading.Thread(target=send) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(failures) == 2


def test_a_failed_fsync_at_the_end_of_a_file_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def fail_once(file: int) -> None:
        calls.append(file)
        if len(calls) == 1:
            raise OSError(5, "Input/output error")
        real(file)

    with FileOutbox(tmp_path, segment_bytes=1) as outbox:
        outbox.send("t", "safe")
        monkeypatch.setattr(os, "fsync", fail_once)
        for _ in range(2):
            with pytest.raises(OutboxError, match="cannot be written"):
                outbox.send("t", "unsure")
        assert [entry.value for _, entry in outbox.pending(9)] == [b"safe"]


def test_threads_that_send_together_lose_nothing(tmp_path: Path) -> None:
    with FileOutbox(tmp_path, segment_bytes=5_000) as outbox:

        def send(name: int) -> None:
            for number in range(50):
                outbox.send("t", f"{name}-{number}")

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        values = [entry.value.decode() for _, entry in outbox.pending(1000) if entry.value]
    assert len(values) == 200
    for name in range(4):
        assert [each for each in values if each.startswith(f"{name}-")] == [f"{name}-{n}" for n in range(50)]


def test_the_relay_sends_in_order_with_an_id_for_each(
    bootstrap: str, tmp_path: Path, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    with FileOutbox(tmp_path, value_serializer=serializers.json()) as outbox:
        ids = [outbox.send(topic, {"n": number}, key="k") for number in range(20)]
        own = outbox.send(topic, None, key="k", headers={"headrace.id": "chosen"})
        relay = Relay(outbox, bootstrap, batch=8)
        assert relay.drain() == 21
        assert relay.drain() == 0
        relay.stop()
    records = read_all(topic)
    assert [record.header("headrace.id") for record in records] == [
        *(each.encode() for each in ids),
        b"chosen",
    ]
    assert own == "chosen"
    assert [record.value for record in records][:2] == [b'{"n":0}', b'{"n":1}']
    assert records[-1].value is None


def test_what_cannot_be_sent_stays_and_is_sent_later(
    bootstrap: str, tmp_path: Path, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    with FileOutbox(tmp_path) as outbox:
        outbox.send(topic, "patient")
        away = Relay(outbox, "127.0.0.1:1", delivery_timeout_ms=300, linger_ms=0)
        with pytest.raises(DeliveryError):
            away.drain()
        away.stop()
        assert len(outbox) == 1
        with Relay(outbox, bootstrap):
            pass
        assert len(outbox) == 0
    assert [record.value for record in read_all(topic)] == [b"patient"]


def test_what_waits_behind_a_refused_record_is_not_sent_over_and_over(
    bootstrap: str, tmp_path: Path, new_topic: NewTopic, read_all: ReadAll
) -> None:
    small, topic = new_topic(max_message_bytes="1000"), new_topic()
    with FileOutbox(tmp_path) as outbox:
        outbox.send(small, "x" * 5_000)
        outbox.send(topic, "behind it")
        relay = Relay(outbox, bootstrap, linger_ms=0)
        for _ in range(3):
            with pytest.raises(DeliveryError, match=r"raise max\.message\.bytes"):
                relay.drain()
        assert len(outbox) == 2
        assert len(read_all(topic)) == 1
        with Admin(bootstrap) as admin:
            admin.set_topic_config(small, {"max.message.bytes": "10000"})
        assert relay.drain() == 2
        relay.stop()
        assert len(outbox) == 0
    assert [record.value for record in read_all(topic)] == [b"behind it"], (
        "it was acknowledged the first time"
    )


def test_a_full_disk_does_not_end_the_relay(
    bootstrap: str,
    tmp_path: Path,
    new_topic: NewTopic,
    read_all: ReadAll,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = new_topic()
    with FileOutbox(tmp_path) as outbox:
        real, failures = outbox._keep_sent, []

        def full_once() -> None:
            if not failures:
                failures.append(1)
                raise OSError(28, "No space left on device")
            real()

        monkeypatch.setattr(outbox, "_keep_sent", full_once)
        with Relay(outbox, bootstrap, poll_interval=0.05, linger_ms=0):
            outbox.send(topic, "one")
            while not failures:
                time.sleep(0.01)
            outbox.send(topic, "two")
    assert [record.value for record in read_all(topic)] == [b"one", b"two"]


def test_a_producer_killed_again_and_again_skips_nothing(
    bootstrap: str, tmp_path: Path, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    accepted = -1
    for round_number in range(3):
        child = subprocess.Popen(
            [sys.executable, HERE / "outbox_writer.py", tmp_path, bootstrap, topic, str(accepted + 1)],
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        for line in child.stdout:
            accepted = int(line)
            if accepted >= (round_number + 1) * 150:
                child.kill()
                break
        # What it printed while it was being killed was accepted, too.
        accepted = max([accepted, *map(int, child.stdout.read().split(b"\n")[:-1])])
        child.wait()
    with FileOutbox(tmp_path) as outbox:
        relay = Relay(outbox, bootstrap)
        relay.drain()
        relay.stop()
    records = read_all(topic)
    by_id = {record.header("headrace.id"): record.value for record in records}
    numbers = [int(value) for value in by_id.values() if value is not None]
    assert set(range(accepted + 1)) <= set(numbers)
    # The last record of a killed process may be safe without its number having been printed.
    assert len(numbers) - len(set(numbers)) <= 3
    first_seen = list(dict.fromkeys(int(record.value) for record in records if record.value))
    assert first_seen == sorted(first_seen)


@pytest.fixture(params=["sqlite", "mariadb"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> sa.Engine:
    if request.param == "sqlite":
        return sa.create_engine(f"sqlite:///{tmp_path / 'test.db'}")
    return sa.create_engine(request.getfixturevalue("mariadb").new_database())


def test_a_record_in_the_table_exists_only_if_its_transaction_commits(
    engine: sa.Engine, bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    outbox = SqlOutbox(engine)
    with engine.begin() as connection:
        sent = outbox.send(connection, topic, "kept", key="k", headers={"a": "b"}, partition=0)
    connection = engine.connect()
    transaction = connection.begin()
    outbox.send(connection, topic, "rolled back")
    transaction.rollback()
    connection.close()
    relay = Relay(outbox, bootstrap)
    assert relay.drain() == 1
    relay.stop()
    [record] = read_all(topic)
    assert (record.key, record.value, record.header("a")) == (b"k", b"kept", b"b")
    assert record.header("headrace.id") == sent.encode()
    assert len(outbox) == 0


class LockedDatabase:
    """An outbox whose database another connection locks at a chosen moment, for longer than the engine waits."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self.outbox = SqlOutbox(engine)
        self.refusals = 0

        @sa.event.listens_for(engine, "connect")
        def wait_briefly(connection: Any, _: object) -> None:
            short = "PRAGMA busy_timeout=100" if self._is_sqlite else "SET innodb_lock_wait_timeout=1"
            connection.cursor().execute(short)

        engine.dispose()

    @property
    def _is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    def lock(self) -> None:
        self._holder = self._engine.connect()
        if self._is_sqlite:
            self._holder.exec_driver_sql("BEGIN EXCLUSIVE")
        else:
            for table in ("headrace_outbox", "headrace_outbox_relay"):
                self._holder.exec_driver_sql(f"SELECT * FROM {table} FOR UPDATE").all()

    def release(self) -> None:
        self._holder.rollback()
        self._holder.close()

    def lock_when_called(
        self, method: str, monkeypatch: pytest.MonkeyPatch, *, calls: int, until: int
    ) -> None:
        """Lock it when ``method`` is called for the ``calls``th time, and release it after ``until`` refusals."""
        real, seen = getattr(self.outbox, method), itertools.count(1)

        def call(*arguments: object) -> object:
            if next(seen) == calls:
                self.lock()
            try:
                return real(*arguments)
            except StoreUnavailable:
                self.refusals += 1
                if self.refusals == until:
                    self.release()
                raise

        monkeypatch.setattr(self.outbox, method, call)

    def put(self, topic: str, *values: str) -> None:
        with self._engine.begin() as connection:
            for value in values:
                self.outbox.send(connection, topic, value)


def test_what_was_acknowledged_while_the_database_was_locked_is_not_sent_again(
    engine: sa.Engine,
    bootstrap: str,
    new_topic: NewTopic,
    read_all: ReadAll,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, database = new_topic(), LockedDatabase(engine)
    database.put(topic, "one", "two", "three")
    database.lock_when_called("sent", monkeypatch, calls=1, until=3)
    relay = Relay(database.outbox, bootstrap, linger_ms=0)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            relay.drain()
    database.put(topic, "four")
    assert relay.drain() == 4
    relay.stop()
    assert len(database.outbox) == 0
    assert [record.value for record in read_all(topic)] == [b"one", b"two", b"three", b"four"]


def test_a_database_locked_while_the_broker_takes_its_time_makes_nothing_come_twice(
    engine: sa.Engine,
    make_broker: Callable[..., BrokerThread],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, database = make_broker(), LockedDatabase(engine)
    topic = broker.create_topic()
    database.put(topic, "one", "two")
    database.lock_when_called("hold", monkeypatch, calls=2, until=1)
    broker.faults.drop("Produce", times=1_000_000)

    def heal_when_it_was_locked() -> None:
        while not database.refusals:
            time.sleep(0.01)
        broker.faults.heal()

    healing = threading.Thread(target=heal_when_it_was_locked, daemon=True)
    healing.start()
    relay = Relay(database.outbox, broker.bootstrap, linger_ms=0)
    assert relay.drain() == 2
    relay.stop()
    healing.join()
    assert database.refusals == 1
    found = scan({"bootstrap.servers": broker.bootstrap}, {TopicPartition(topic, 0): None})
    assert [record.value for record in found] == [b"one", b"two"]


def test_a_relay_that_stops_while_the_database_is_locked_ticks_off_what_it_sent(
    engine: sa.Engine,
    bootstrap: str,
    new_topic: NewTopic,
    read_all: ReadAll,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, database = new_topic(), LockedDatabase(engine)
    database.put(topic, "one", "two")
    database.lock_when_called("sent", monkeypatch, calls=1, until=4)
    with Relay(database.outbox, bootstrap, poll_interval=0.05, linger_ms=0):
        while not database.refusals:
            time.sleep(0.01)
    assert database.refusals == 4
    assert len(database.outbox) == 0
    assert [record.value for record in read_all(topic)] == [b"one", b"two"]


def test_a_transaction_that_commits_late_is_not_skipped(
    mariadb: object, bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    engine = sa.create_engine(mariadb.new_database())  # type: ignore[attr-defined]
    outbox = SqlOutbox(engine)
    relay = Relay(outbox, bootstrap)
    with engine.connect() as slow, slow.begin():
        outbox.send(slow, topic, "lower number, commits last")
        with engine.begin() as quick:
            outbox.send(quick, topic, "higher number, commits first")
        assert relay.drain() == 1
    assert relay.drain() == 1
    relay.stop()
    assert len(read_all(topic)) == 2


def test_one_relay_works_and_another_takes_over_when_it_is_gone(engine: sa.Engine) -> None:
    holder, other = SqlOutbox(engine, lease=600), SqlOutbox(engine, lease=600)
    assert holder.hold()
    assert holder.hold()
    assert not other.hold()
    dead, heir = (SqlOutbox(engine, lease=lease, table="second") for lease in (0.05, 600))
    assert dead.hold()
    while not heir.hold():
        heir.wait(0.02)
    assert not dead.hold()


def test_a_relay_goes_on_whatever_happens_to_it(
    bootstrap: str, tmp_path: Path, new_topic: NewTopic, read_all: ReadAll, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    with FileOutbox(tmp_path) as outbox:
        real, failures = outbox.pending, []

        def broken_once(limit: int) -> object:
            if not failures:
                failures.append(1)
                raise LookupError("a mistake of somebody's")
            return real(limit)

        monkeypatch.setattr(outbox, "pending", broken_once)
        with Relay(outbox, bootstrap, poll_interval=0.05, linger_ms=0) as relay:
            with pytest.raises(ConfigError, match="running already"):
                relay.start()
            outbox.send(topic, "one")
            while not failures:
                time.sleep(0.01)
    assert [record.value for record in read_all(topic)] == [b"one"]


def test_a_relay_gets_another_producer_when_its_own_is_broken_for_good(
    make_broker: Callable[..., BrokerThread], tmp_path: Path
) -> None:
    broker = make_broker()
    topic = broker.create_topic()
    with FileOutbox(tmp_path / "outbox") as outbox:
        relay = Relay(outbox, broker.bootstrap, linger_ms=0)
        outbox.send(topic, "one")
        assert relay.drain() == 1
        outbox.send(topic, "two")
        broker.faults.error("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER")
        failures = 0
        while len(outbox):
            try:
                relay.drain()
            except BrokerError:
                failures += 1
                assert failures < 10
        relay.stop()
    assert failures >= 1
    found = scan({"bootstrap.servers": broker.bootstrap}, {TopicPartition(topic, 0): None})
    assert [record.value for record in found] == [b"one", b"two"]


def test_what_is_sent_while_another_thread_closes_is_safe_or_refused(tmp_path: Path) -> None:
    for number in range(10):
        folder = tmp_path / str(number)
        outbox = FileOutbox(folder)
        accepted: list[str] = []

        def send(outbox: FileOutbox = outbox, accepted: list[str] = accepted) -> None:
            with contextlib.suppress(OutboxError):
                while True:
                    accepted.append(outbox.send("t", "x"))

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        while not accepted:
            time.sleep(0.001)
        outbox.close()
        outbox.close()
        for thread in threads:
            thread.join()
        with FileOutbox(folder) as again:
            assert set(accepted) <= {entry.id for _, entry in again.pending(1_000_000)}


def test_a_broker_that_takes_its_time_does_not_bring_in_another_relay(
    make_broker: Callable[..., BrokerThread], tmp_path: Path
) -> None:
    broker = make_broker()
    topic = broker.create_topic()
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'test.db'}")
    outbox, other = SqlOutbox(engine, lease=2.0), SqlOutbox(engine, lease=2.0)
    relay = Relay(outbox, broker.bootstrap, linger_ms=0)
    with engine.begin() as connection:
        outbox.send(connection, topic, "one")
    broker.faults.delay("Produce", 4)
    sent: list[int] = []
    working = threading.Thread(target=lambda: sent.append(relay.drain()))
    assert outbox.hold()
    working.start()
    while not sent:
        assert not other.hold()
        time.sleep(0.05)
    working.join()
    relay.stop()
    assert sent == [1]

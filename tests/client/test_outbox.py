"""Outboxes: nothing that was accepted is skipped, whatever dies; what comes twice has the same id."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client import DeliveryError, Record, serializers
from headrace.client.outbox import FileOutbox, OutboxError, Relay, SqlOutbox
from headrace.client.outbox.entry import Entry, decode, encode

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

"""Dead letters in the hands of an operator: listed, shown, sent back, dropped, and remembered as settled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client import (
    Admin,
    BrokerError,
    ClientError,
    ConfigError,
    Producer,
    Record,
    TopicPartition,
)
from headrace.client.dead_letter_box import DeadLetterBox, Settled, parse_places
from headrace.client.dead_letters import DeadLetters, headers_for
from headrace.testing.broker import BrokerThread

NewTopic = Callable[..., str]
ReadAll = Callable[..., list[Record]]


@settings(deadline=None, max_examples=50)
@given(
    rounds=st.lists(st.sets(st.integers(0, 40)), max_size=4), holes=st.sets(st.integers(0, 40), max_size=10)
)
def test_what_is_settled_is_remembered_in_an_offset_and_a_note(
    rounds: list[set[int]], holes: set[int]
) -> None:
    present = [offset for offset in range(41) if offset not in holes]
    settled, expected = Settled(), set()
    for chosen in rounds:
        chosen = chosen - holes
        expected |= chosen
        settled.add(chosen, present)
        settled = Settled.from_commit(settled.first, settled.note())
    assert {offset for offset in present if offset in settled} == expected


def bury(bootstrap: str, topic: str, count: int = 4) -> str:
    """Fill a topic and put all its records aside."""
    letters = DeadLetters({"bootstrap.servers": bootstrap})
    with Producer(bootstrap) as producer:
        for number in range(count):
            partition = number % 2
            place = producer.send_and_wait(
                topic, f"v{number}", key=f"k{number}", partition=partition, headers={"own": "x"}
            )
            record = Record(
                topic,
                partition,
                place.offset,
                f"k{number}".encode(),
                f"v{number}".encode(),
                (("own", b"x"),),
            )
            error = ValueError("bad number") if number % 2 else OSError("service away")
            letters.send(record, error, attempt=3).result(30)
    letters.close()
    return f"{topic}.dlq"


def values(box: DeadLetterBox, *, settled: bool = False) -> set[bytes | None]:
    return {letter.value for letter in box.letters(settled=settled)}


def test_letters_go_back_to_where_they_came_from_and_are_settled(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic(2)
    name = bury(bootstrap, topic)
    with DeadLetterBox(name, bootstrap) as box:
        assert values(box) == {b"v0", b"v1", b"v2", b"v3"}
        assert box.replay(lambda letter: "service away" in letter.reason) == 2
        assert values(box) == {b"v1", b"v3"}
    with DeadLetterBox(name, bootstrap) as later:
        assert values(later) == {b"v1", b"v3"}
        assert values(later, settled=True) == {b"v0", b"v1", b"v2", b"v3"}
        assert later.count() == 2
    replayed = [record for record in read_all(topic) if record.header("headrace.id") is not None]
    assert [(record.partition, record.key, record.value) for record in replayed] == [
        (0, b"k0", b"v0"),
        (0, b"k2", b"v2"),
    ]
    assert replayed[0].headers == (("own", b"x"), ("headrace.id", f"{topic}-0-0".encode()))


def test_letters_can_go_to_another_topic(bootstrap: str, new_topic: NewTopic, read_all: ReadAll) -> None:
    topic, other = new_topic(2), new_topic()
    with DeadLetterBox(bury(bootstrap, topic), bootstrap) as box:
        assert box.replay(to=other) == 4
    assert {record.value for record in read_all(other)} == {b"v0", b"v1", b"v2", b"v3"}


def test_dropped_letters_are_deleted_from_the_beginning_on(
    bootstrap: str, admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    name = bury(bootstrap, topic)
    with DeadLetterBox(name, bootstrap) as box:
        first = next(box.letters())
        place = TopicPartition(name, first.partition)
        assert box.drop(parse_places([f"{first.partition}:{first.offset}"])) == 1
        assert admin.offsets("earliest", [place]) == {place: first.offset + 1}
        assert box.drop() == 3
        assert list(box.letters(settled=True)) == []


def test_boxes_that_settle_letters_at_the_same_time_keep_each_others_notes(
    bootstrap: str, new_topic: NewTopic
) -> None:
    letters = bury(bootstrap, new_topic(2), 12)
    boxes = [DeadLetterBox(letters, bootstrap) for _ in range(3)]

    def settle(number: int) -> int:
        mine = {f"v{each}".encode() for each in range(number + 1, 12, 4)}
        return boxes[number].drop(lambda letter: letter.value in mine)

    with ThreadPoolExecutor() as threads:
        assert list(threads.map(settle, range(3))) == [3, 3, 3]
    for box in boxes:
        box.close()
    with DeadLetterBox(letters, bootstrap) as box:
        assert values(box) == {b"v0", b"v4", b"v8"}


def test_ordinary_records_are_never_taken_for_dead_letters(
    bootstrap: str, admin: Admin, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, "precious")
    with DeadLetterBox(topic, bootstrap) as box:
        with pytest.raises(
            ClientError, match=f"{topic} is no dead-letter topic: its record 0:0 has no header"
        ):
            box.drop()
        with pytest.raises(ClientError, match=f"would be in {topic}.dlq"):
            list(box.letters())
    done = headrace("dlq", "drop", topic, "--all", "-b", bootstrap, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{topic} is no dead-letter topic" in done.stderr
    assert [record.value for record in read_all(topic)] == [b"precious"]


def test_a_dead_letter_topic_may_have_any_name(bootstrap: str, new_topic: NewTopic) -> None:
    topic, grave = new_topic(), new_topic()
    letters = DeadLetters({"bootstrap.servers": bootstrap}, lambda _: grave)
    letters.send(Record(topic, 0, 7, None, b"bad"), ValueError("no"), attempt=1).result(30)
    letters.close()
    with DeadLetterBox(grave, bootstrap) as box:
        assert [(letter.value, letter.origin) for letter in box.letters()] == [(b"bad", topic)]


def test_a_failing_replay_remembers_what_went_through(bootstrap: str, new_topic: NewTopic) -> None:
    name = bury(bootstrap, new_topic(2))
    with DeadLetterBox(name, bootstrap) as box:
        calls: list[int] = []

        def choose(letter: object) -> bool:
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return True

        with pytest.raises(KeyboardInterrupt):
            box.replay(choose)
        assert box.count() == 3


def test_nothing_is_replayed_that_could_not_be_remembered(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    """Every other letter of many: their places do not fit into one commit's note."""
    topic = new_topic()
    letters = DeadLetters({"bootstrap.servers": bootstrap})
    sent = [
        letters.send(Record(topic, 0, number, None, b"%d" % number), ValueError(f"kind {number % 2}"), 1)
        for number in range(1200)
    ]
    for each in sent:
        each.result()
    letters.close()
    with DeadLetterBox(f"{topic}.dlq", bootstrap) as box:
        with pytest.raises(ClientError, match=r"too many scattered letters .* settle those from offset 0 on"):
            box.replay(lambda letter: letter.reason.endswith("1"))
        replayed = len(read_all(topic))
        assert 0 < replayed < 600
        assert box.count() == 1200 - replayed
        assert (
            box.replay(lambda letter: letter.offset < 1000) == 1000 - replayed
        )  # nothing of them is scattered
        assert box.replay(lambda letter: letter.reason.endswith("1")) > 0
    values = [record.value for record in read_all(topic)]
    assert len(values) == len(set(values))


def test_places_are_read_as_written() -> None:
    with pytest.raises(ConfigError, match="PARTITION:OFFSET"):
        parse_places(["17"])
    with pytest.raises(ConfigError, match="PARTITION:OFFSET"):
        parse_places(["0:a-b"])


def headrace(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 or not check, done.stderr
    return done


def test_the_command_lists_shows_replays_and_drops(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic(2)
    name = bury(bootstrap, topic)
    server = ("-b", bootstrap)
    assert {"topic": name, "unsettled": 4} in json.loads(headrace("dlq", "list", "--json", *server).stdout)
    listed = json.loads(headrace("dlq", "list", topic, "--json", *server).stdout)
    assert {letter["value"] for letter in listed} == {"v0", "v1", "v2", "v3"}
    place = "{partition}:{offset}".format(**next(letter for letter in listed if letter["value"] == "v1"))
    shown = headrace("dlq", "show", name, place, *server).stdout
    assert "Reason:   ValueError: bad number" in shown
    assert f"From:     {topic}, partition 1, offset 0" in shown
    assert "Value:    v1" in shown
    assert headrace("dlq", "replay", name, place, *server).stdout == f"Replayed 1 dead letter of {name}.\n"
    assert [record.value for record in read_all(topic) if record.header("headrace.id")] == [b"v1"]
    dropped = headrace("dlq", "drop", name, "--all", "--reason", "service away", "--json", *server).stdout
    assert json.loads(dropped) == {"topic": name, "dropped": 2}
    table = headrace("dlq", "list", name, *server).stdout
    assert "ValueError: bad number" in table
    assert "service away" not in table


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("replay", "TOPIC"), "Say which letters"),
        (("replay", "TOPIC", "17"), "PARTITION:OFFSET"),
        (("show", "TOPIC", "0:999"), "There is no dead letter at 0:999"),
        (("list", "nothing.dlq"), "There is no topic nothing.dlq"),
        (("drop", "TOPIC", "0:999"), "No unsettled dead letter"),
    ],
)
def test_a_wrong_command_gets_one_sentence(
    bootstrap: str, admin: Admin, new_topic: NewTopic, arguments: tuple[str, ...], sentence: str
) -> None:
    name = f"{new_topic()}.dlq"
    admin.create_topic(name, partitions=1)
    given = [name if argument == "TOPIC" else argument for argument in arguments]
    done = headrace("dlq", *given, "-b", bootstrap, check=False)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_simulation_reads_made_up_keys_files_and_topics(
    bootstrap: str, new_topic: NewTopic, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = new_topic(2)
    with Producer(bootstrap) as producer:
        for number in range(300):
            producer.send_and_forget(topic, "x", key=f"k{number % 100}")
    from_topic = json.loads(
        headrace("partitioner", "simulate", "--topic", topic, "--to", "4", "--json", "-b", bootstrap).stdout
    )
    assert {(each["keys"], each["partitions"], each["to"]) for each in from_topic} == {(100, 2, 4)}
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    file.write_text("a\nb\n\nc\na\n")
    from_file = json.loads(
        headrace("partitioner", "simulate", "-p", "2", "--to", "4", "--keys-file", str(file), "--json").stdout
    )
    assert {each["keys"] for each in from_file} == {3}
    made_up = headrace("partitioner", "simulate", "-p", "6", "--to", "8", "--keys", "20000").stdout
    shares = {line.split()[0]: float(line.split()[2].rstrip("%")) for line in made_up.splitlines()[2:]}
    assert shares["murmur2"] > 70
    assert shares["hash_slots"] < 27
    assert shares["consistent_hash"] < 33
    refused = headrace("partitioner", "simulate", "--to", "4", check=False)
    assert "Give --partitions" in refused.stderr


def test_a_letter_larger_than_producers_send_by_default_can_be_replayed(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic, value = new_topic(max_message_bytes="2000000"), os.urandom(1_900_000)
    letters = DeadLetters({"bootstrap.servers": bootstrap})
    letters.send(Record(topic, 0, 0, b"k", value), ValueError("no"), attempt=1).result(30)
    letters.close()
    with DeadLetterBox(f"{topic}.dlq", bootstrap) as box:
        assert box.replay() == 1
    assert [record.value for record in read_all(topic)] == [value]


def test_an_error_that_cannot_be_told_is_named() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert dict(headers_for(Record("t", 0, 0), Broken(), 1))["headrace.dlq.reason"] == b"Broken"


def test_letters_get_another_producer_when_theirs_is_broken_for_good(
    make_broker: Callable[..., BrokerThread],
) -> None:
    broker = make_broker()
    topic = broker.create_topic()
    letters = DeadLetters({"bootstrap.servers": broker.bootstrap})
    letters.send(Record(topic, 0, 0, b"k", b"one"), ValueError("no"), attempt=1).result(30)
    broker.faults.error("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER")
    failures = 0
    while True:
        try:
            letters.send(Record(topic, 0, 1, b"k", b"two"), ValueError("no"), attempt=1).result(30)
            break
        except BrokerError:
            failures += 1
            assert failures < 10
    letters.close()
    assert failures >= 1
    with DeadLetterBox(f"{topic}.dlq", broker.bootstrap) as box:
        assert [letter.value for letter in box.letters()] == [b"one", b"two"]

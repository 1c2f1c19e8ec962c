"""kcat, the command-line client of librdkafka: metadata, produce, consume, offsets by time."""

from collections.abc import Callable

import pytest

from bench.provision import KCAT, need_packages
from bench.systems.kafka_protocol import RunningKafka
from interop.kafka.dataset import Record
from interop.kafka.programs import PROGRAMS, Program, finish

Kcat = Callable[..., str]
Written = Callable[[Program, str], tuple[str, list[Record]]]


@pytest.fixture(scope="module")
def kcat(bootstrap: str) -> Kcat:
    need_packages([KCAT])
    return lambda *arguments, stdin=None: finish(["kcat", "-b", bootstrap, *arguments], stdin=stdin)


def test_it_lists_brokers_topics_and_partitions(broker: RunningKafka, kcat: Kcat) -> None:
    broker.create("kcat-list", 4)
    listed = kcat("-L", "-t", "kcat-list")
    assert "1 brokers:" in listed
    assert 'topic "kcat-list" with 4 partitions:' in listed
    assert listed.count("isrs: ") == 4


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_and_tombstones_come_back(broker: RunningKafka, kcat: Kcat, codec: str) -> None:
    topic = f"kcat-{codec}"
    broker.create(topic)
    lines = "".join(f"key{number}|value{number}\n" for number in range(500)) + "gone|\n"
    kcat(
        "-P", "-t", topic, "-p", "0", "-K|", "-Z", "-z", codec, "-H", "source=kcat", "-H", "n=1", stdin=lines
    )
    read = kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%o %k %S %s %h\\n").splitlines()
    assert read[0] == "0 key0 6 value0 source=kcat,n=1"
    assert read[499] == "499 key499 8 value499 source=kcat,n=1"
    assert read[500].startswith("500 gone -1 ")
    assert len(read) == 501


def test_it_sends_with_the_idempotent_producer(broker: RunningKafka, kcat: Kcat) -> None:
    broker.create("kcat-idempotent")
    kcat("-P", "-t", "kcat-idempotent", "-p", "0", "-X", "enable.idempotence=true", stdin="one\ntwo\n")
    assert kcat("-C", "-t", "kcat-idempotent", "-o", "beginning", "-e", "-q") == "one\ntwo\n"


def test_a_topic_comes_into_being_when_first_written(kcat: Kcat) -> None:
    kcat("-P", "-t", "kcat-auto", stdin="first\n")
    assert kcat("-C", "-t", "kcat-auto", "-o", "beginning", "-e", "-q") == "first\n"


@pytest.mark.parametrize("writer", PROGRAMS, ids=lambda program: program.name)
def test_it_reads_what_other_clients_wrote(kcat: Kcat, written: Written, writer: Program) -> None:
    for compression in writer.compressions:
        topic, records = written(writer, compression)
        read = kcat(
            "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%p %o %T %K %S %h\\n"
        ).splitlines()
        expected = [
            f"{record.partition} {record.offset} {record.timestamp} {_length(record.key)} {_length(record.value)} "
            + ",".join(
                f"{name}={'NULL' if value is None else value.decode()}" for name, value in record.headers
            )
            for record in records
        ]
        assert sorted(read) == sorted(expected)


def test_it_finds_offsets_by_time(kcat: Kcat, written: Written) -> None:
    topic, records = written(PROGRAMS[0], "none")
    log = [record for record in records if record.partition == 1]
    asked = log[len(log) // 2].timestamp
    first = next(record.offset for record in log if record.timestamp >= asked)
    assert kcat("-Q", "-t", f"{topic}:1:{asked}").strip() == f"{topic} [1] offset {first}"


def _length(value: bytes | None) -> int:
    return -1 if value is None else len(value)

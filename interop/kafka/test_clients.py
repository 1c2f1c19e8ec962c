"""Clients of other languages: what each writes, each reads, with every codec; offsets, admin calls, old releases."""

from collections.abc import Callable

import pytest

from bench.systems.kafka_protocol import RunningKafka
from interop.kafka.dataset import PARTITIONS, Record, dataset, in_order
from interop.kafka.programs import FRANZ, JAVA_CLIENT, KAFKAJS, PROGRAMS, SARAMA, Program

Written = Callable[[Program, str], tuple[str, list[Record]]]

WRITES = [(program, compression) for program in PROGRAMS for compression in program.compressions]


@pytest.mark.parametrize(("writer", "compression"), WRITES, ids=lambda value: getattr(value, "name", value))
def test_each_client_writes_with_each_codec(written: Written, writer: Program, compression: str) -> None:
    topic, _ = written(writer, compression)
    assert topic


@pytest.mark.parametrize("reader", PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("writer", PROGRAMS, ids=lambda program: program.name)
def test_what_one_client_writes_another_reads(
    bootstrap: str, written: Written, writer: Program, reader: Program
) -> None:
    common = [compression for compression in writer.compressions if compression in reader.compressions]
    expected = dict(written(writer, compression) for compression in common)
    found = reader.read(bootstrap, expected)
    for topic, records in expected.items():
        assert found[topic] == records, (
            f"{reader.name} read other records from {topic} than {writer.name} wrote"
        )


@pytest.mark.parametrize("which", ["earliest", "latest", "max", "middle", "between", "before", "after"])
@pytest.mark.parametrize("client", PROGRAMS, ids=lambda program: program.name)
def test_offsets_are_found_by_end_and_by_time(
    bootstrap: str, written: Written, client: Program, which: str
) -> None:
    if which == "max" and client in (SARAMA, KAFKAJS):
        which = "latest"  # these two cannot ask for the largest timestamp
    topic, records = written(JAVA_CLIENT, "zstd")
    middle = records[len(records) // 2].timestamp
    asked = {"middle": middle, "between": middle + 1, "before": 0, "after": middle * 2}.get(which, which)
    expected = {}
    for partition in range(PARTITIONS):
        log = [record for record in records if record.partition == partition]
        expected[partition] = _expected_offset(log, asked)
    if which == "after" and client in (FRANZ, KAFKAJS):
        expected = {
            partition: len(records) // PARTITIONS for partition in expected
        }  # they answer the end, by choice
    assert client.offsets(bootstrap, topic, str(asked)) == expected


def _expected_offset(log: list[Record], asked: int | str) -> int:
    if asked == "earliest":
        return 0
    if asked == "latest":
        return len(log)
    if asked == "max":
        return max(log, key=lambda record: (record.timestamp, -record.offset)).offset
    return next((record.offset for record in log if record.timestamp >= int(asked)), -1)


@pytest.mark.parametrize("client", PROGRAMS, ids=lambda program: program.name)
def test_admin_calls_work_and_refuse_as_in_kafka(bootstrap: str, client: Program) -> None:
    client.run("admin", bootstrap, f"admin-{client.name}")


RELEASES = [
    *(
        (FRANZ, f"v{release}")
        for release in ("0.11.0", "1.1", "2.1", "2.4", "2.8", "3.1", "3.5", "3.7", "3.9", "4.0")
    ),
    *((SARAMA, release) for release in ("1.0.0", "2.1.0", "2.4.0", "3.0.0", "3.6.0")),
]


@pytest.mark.parametrize(("client", "release"), RELEASES, ids=lambda value: getattr(value, "name", value))
def test_clients_that_speak_an_older_release_work(
    broker: RunningKafka, client: Program, release: str
) -> None:
    topic = f"old-{client.name}-{release}"
    records = dataset(60)
    broker.create(topic, PARTITIONS, {"retention.ms": "-1"})
    client.write(broker.address, topic, records, "gzip", release)
    assert client.read(broker.address, [topic], release)[topic] == in_order(records)

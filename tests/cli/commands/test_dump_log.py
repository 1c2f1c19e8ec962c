"""What a partition's files hold, printed as Kafka's own tool prints it, and damage found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.cli import frame
from headrace.cli.view.dump import decoders
from headrace.cli.view.dump.segment_file import SegmentFile
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.records import BatchBuilder, Record

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    from headrace.cli import dispatch

    def run(*arguments: object) -> tuple[int, str, str]:
        code = frame.run(lambda: dispatch([str(a) for a in arguments]))
        out, err = capfd.readouterr()
        return code, out, err

    return run


def batch(base_offset: int, *values: bytes, key: bytes | None = None) -> bytes:
    builder = BatchBuilder(base_offset=base_offset)
    for number, value in enumerate(values):
        builder.append(1_700_000_000_000 + number, key, value, [("h", b"1")])
    return bytes(builder.build())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    file = directory / "00000000000000000005.log"
    file.write_bytes(batch(5, b"one", b"two", key=b"k") + batch(7, b"three"))
    return file


def test_batches_print_as_kafka_prints_them(run: Run, log: Path) -> None:
    code, out, _ = run("kafka", "dump-log", "--files", log)
    first, start, line, *_ = out.splitlines()
    assert code == 0
    assert first == f"Dumping {log}"
    assert start == "Log starting offset: 5"
    assert line.startswith(
        "baseOffset: 5 lastOffset: 6 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        "partitionLeaderEpoch: -1 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        "position: 0 CreateTime: 1700000000001 size: "
    )
    assert line.endswith("isvalid: true")


def test_records_print_with_keys_and_payloads(run: Run, log: Path) -> None:
    _, out, _ = run("kafka", "dump-log", "--files", log, "--print-data-log")
    assert (
        "| offset: 6 CreateTime: 1700000000001 keySize: 1 valueSize: 3 sequence: -1 headerKeys: [h] key: k payload: two"
        in out.splitlines()
    )


def test_transaction_markers_say_what_they_end(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "00000000000000000000.log"
    marker = build_end_transaction_marker(
        producer_id=7, producer_epoch=1, coordinator_epoch=3, committed=False, timestamp=9
    )
    file.write_bytes(marker)
    _, out, _ = run("kafka", "dump-log", "--files", file, "--deep-iteration")
    assert "endTxnMarker: ABORT coordinatorEpoch: 3" in out


def test_a_torn_tail_is_told(run: Run, log: Path) -> None:
    with log.open("ab") as file:
        file.write(batch(8, b"torn")[:-3])
    _, out, _ = run("kafka", "dump-log", "--files", log)
    assert "invalid bytes at the end of 00000000000000000005.log" in out.splitlines()[-1]


def test_a_sound_directory_verifies(run: Run, log: Path) -> None:
    code, out, _ = run("dump-log", log.parent, "--verify")
    assert (code, out) == (0, f"{log}: 2 batches, 3 records, sound\n")


def test_a_flipped_bit_is_found(run: Run, log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data)
    code, out, err = run("dump-log", log.parent, "--verify", "--json")
    (report,) = json.loads(out)
    assert code == 1
    assert report["findings"] == ["The batch at position 0 (offset 5) has a wrong checksum."]
    assert "1 of 1 segments are damaged" in err


def test_an_index_that_misses_its_batch_is_found(run: Run, log: Path) -> None:
    second = next(b.position for b in SegmentFile(log) if b.header.base_offset == 7)
    index = log.with_suffix(".index")
    index.write_bytes((2).to_bytes(4, "big") + (second + 1).to_bytes(4, "big"))
    code, out, _ = run("dump-log", log, "--verify")
    assert code == 1
    assert "00000000000000000005.index points offset 7 to position" in out
    code, _, err = run("kafka", "dump-log", "--files", index)
    assert code == 1
    assert f"Mismatches in :{index}\n  Index offset: 7, log offset: -1\n" in err


def test_records_are_json_for_scripts(run: Run, log: Path) -> None:
    _, out, _ = run("dump-log", log, "--records", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line.get("value") for line in lines if "headers" in line] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("nowhere", "There is no"), ("notes.txt", "is none of a partition's files"), ("", "holds no segments")],
)
def test_what_is_no_partition_is_refused(run: Run, tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    code, _, err = run("dump-log", tmp_path / name)
    assert code == 1
    assert sentence in err


# Written by Apache Kafka 4.1.0; the text is what its own dump tool makes of it.
KAFKA_RECORDS = [
    (
        b"\x00\x01\x00\x07classic\x00\x02c1\x00\x00\x00\x00",
        b"\x00\x04\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x01\x00\x00\x01\xa1\xe2\xa9\xda\x12\x00",
        '{"type":"1","data":{"group":"classic","topic":"c1","partition":0}}',
        '{"version":"4","data":{"offset":3,"leaderEpoch":0,"metadata":"","commitTimestamp":1794804144658}}',
    ),
    (
        b"\x00\x02\x00\x07classic",
        b"\x00\x03\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x01\xa1\xe2\xa9\xd9\x84\x00\x00\x00\x00",
        '{"type":"2","data":{"group":"classic"}}',
        '{"version":"3","data":{"protocolType":"","generation":0,"protocol":null,"leader":null,'
        '"currentStateTimestamp":1794804144516,"members":[]}}',
    ),
    (
        b"\x00\x05\x00\x06modern\x00\x16LKGeIbAnSj22E6vZ5Ro2dQ",
        b"\x00\x00\x00\x00\x04cl3\x0b/127.0.0.1\x03\x03c1\x03t1\x01\x00\x04\x93\xe0\x00\x01\x00\x01\x00",
        '{"type":"5","data":{"groupId":"modern","memberId":"LKGeIbAnSj22E6vZ5Ro2dQ"}}',
        '{"version":"0","data":{"instanceId":null,"rackId":null,"clientId":"cl3","clientHost":"/127.0.0.1",'
        '"subscribedTopicNames":["c1","t1"],"subscribedTopicRegex":"","rebalanceTimeoutMs":300000,'
        '"serverAssignor":null,"classicMemberMetadata":null}}',
    ),
    (b"\x00\x02\x00\x02g5", None, '{"type":"2","data":{"group":"g5"}}', "<DELETE>"),
    (b"\x00\x63", None, "Unknown record type 99 at offset 1, skipping.", None),
]


@pytest.mark.parametrize(("key", "value", "shown_key", "shown_value"), KAFKA_RECORDS)
def test_group_records_read_as_in_kafkas_own_tool(
    key: bytes, value: bytes | None, shown_key: str, shown_value: str | None
) -> None:
    assert decoders.offsets(Record(1, 0, key, value)) == (shown_key, shown_value)


def test_an_empty_file_is_called_so(headrace, tmp_path):
    file = tmp_path / "00000000000000000000.log"
    file.touch()
    assert headrace("dump-log", file).lines == [f"{file}: empty"]


def test_a_topics_name_in_place_of_a_path_is_answered_with_the_path(headrace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert headrace("dump-log", "orders").err == (
        "headrace: There is no file or directory orders. Name a partition's directory below the broker's data "
        "directory, such as data/orders-0.\n"
    )
    for partition in range(2):
        (tmp_path / "data" / f"orders-{partition}").mkdir(parents=True)
    for name, hint in (("orders", "data/orders-0, data/orders-1"), ("orders-1", "data/orders-1")):
        ran = headrace("dump-log", name)
        assert ran.err == f"headrace: There is no file or directory {name}. Did you mean {hint}?\n"

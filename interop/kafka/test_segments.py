"""Kafka's DumpLogSegments reads every file of a data directory, record by record, without complaint."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.systems.kafka_protocol import KafkaProtocolSystem
from interop.kafka.dataset import PARTITIONS, dataset
from interop.kafka.programs import EVERY_COMPRESSION, FRANZ, JAVA_CLIENT

Tool = Callable[..., str]

COMPLAINTS = ("mismatch", "isvalid: false", "corrupt", "Found", "Non-consecutive", "not found", "Exception")


@pytest.fixture(scope="module")
def stopped(system: KafkaProtocolSystem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory after a clean stop, with many segments, every codec, a compacted topic and deleted records."""
    data = tmp_path_factory.mktemp("segments") / "data"
    with system.start(data, {"log.cleaner.backoff.ms": "200"}) as broker:
        for codec in EVERY_COMPRESSION:
            broker.create(codec, PARTITIONS, {"retention.ms": "-1"})
            JAVA_CLIENT.write(broker.address, codec, dataset(), codec)
            FRANZ.write(broker.address, codec, dataset(), codec)
        small = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1024"}
        broker.create("rolled", 1, small)
        broker.load("produce", topic="rolled", records=99_999, size=100, batch_records=50)
        broker.create(
            "compacted", 1, {**small, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        )
        broker.load("produce", topic="compacted", records=99_999, size=100, keys=500, batch_records=500)
        broker.load("produce", topic="compacted", records=9_999, size=100, keys=500, batch_records=500)
    return data


def test_every_log_is_valid_record_by_record(tool: Tool, stopped: Path) -> None:
    logs = sorted(stopped.rglob("*.log"))
    assert len([log for log in logs if log.parent.name == "rolled-0"]) > 5
    shown = _dump(tool, "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs)))
    _no_complaint(shown)
    assert shown.count("isvalid: true") > len(logs)
    rolled = shown.count("| offset: ")
    assert rolled >= 100_000 + 2 * 5 * 240, f"only {rolled} records were printed"


@pytest.mark.parametrize("suffix", ["index", "timeindex", "snapshot"])
def test_every_index_and_snapshot_agrees_with_its_log(tool: Tool, stopped: Path, suffix: str) -> None:
    files = [file for file in sorted(stopped.rglob(f"*.{suffix}")) if file.stat().st_size > 0]
    assert files
    _no_complaint(_dump(tool, "--files", ",".join(map(str, files))))


def test_sparse_indexes_have_entries_and_pass_the_sanity_check(tool: Tool, stopped: Path) -> None:
    indexes = sorted((stopped / "rolled-0").glob("*.index"))
    shown = _dump(tool, "--index-sanity-check", "--files", ",".join(map(str, indexes)))
    assert shown.count("passed sanity check") == len(indexes)
    first = _dump(tool, "--files", str(indexes[0]))
    assert len(re.findall(r"^offset: \d+ position: \d+$", first, re.MULTILINE)) > 100


def _dump(tool: Tool, *arguments: str) -> str:
    return tool("DumpLogSegments", *arguments, limit=180)


def _no_complaint(shown: str) -> None:
    bad = [line for line in shown.splitlines() if any(complaint in line for complaint in COMPLAINTS)]
    assert not bad, "\n".join(bad[:20])

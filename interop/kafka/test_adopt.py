"""A topic directory written by Apache Kafka is adopted by Headrace and served as it was, and grows from there."""

import sys
from pathlib import Path

import pytest

from bench.systems import Headrace, Kafka
from interop.kafka.dataset import PARTITIONS, dataset, in_order
from interop.kafka.programs import FRANZ, JAVA_CLIENT, finish


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_what_kafka_wrote_is_read_from_headrace_record_by_record(tmp_path: Path, compression: str) -> None:
    records = dataset()
    with Kafka().start(tmp_path / "kafka", {}) as kafka:
        kafka.create("orders", PARTITIONS, {"retention.ms": "-1"})
        JAVA_CLIENT.write(kafka.address, "orders", records, compression)
    folders = sorted((tmp_path / "kafka").rglob("orders-*"))
    assert len(folders) == PARTITIONS
    command = [sys.executable, "-m", "headrace.cli", "topics", "adopt", *map(str, folders)]
    command += ["--data", str(tmp_path / "headrace"), "--config", "retention.ms=-1"]
    assert f"Adopted topic orders: {PARTITIONS} partitions" in finish(command, limit=60)
    with Headrace().start(tmp_path / "headrace", {}) as headrace:
        assert FRANZ.read(headrace.address, ["orders"])["orders"] == in_order(records)
        JAVA_CLIENT.write(headrace.address, "orders", records, compression)
        again = FRANZ.read(headrace.address, ["orders"])["orders"]
    assert len(again) == 2 * len(records)

"""Replicas move between directories while the broker is killed with SIGKILL at any moment: what was acknowledged is there, once."""

from __future__ import annotations

import os
import random
import time

import pytest
from confluent_kafka import Producer

from headrace.client.record import TopicPartition
from headrace.client.scan import scan
from headrace.testing.process import BrokerProcess
from headrace.testing.topics import create_topic
from headrace.testing.wire import WireClient
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.waiting import until


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment(tmp_path, seed):
    dice = random.Random(seed)
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    broker = BrokerProcess(tmp_path / "data", {"log.dirs": ",".join(paths), "log.segment.bytes": "1048576"})
    broker.start()
    create_topic(broker.bootstrap, "t", config={"file.delete.delay.ms": 0})
    written = moved = 0
    for _ in range(8):
        here = next(path for path in paths if os.path.isdir(f"{path}/t-0"))
        there = next(path for path in paths if path != here)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        for number in range(written, written + 2000):
            producer.produce("t", b"%d".ljust(1000) % number, partition=0)
        assert producer.flush(60) == 0
        written += 2000
        with WireClient(broker.bootstrap) as client:
            asked = AlterReplicaLogDir(there, [AlterReplicaLogDirTopic("t", [0])])
            reply = client.call(AlterReplicaLogDirsRequest([asked]), 2)
            assert reply.results[0].partitions[0].error_code == 0
        time.sleep(dice.random() * 0.15)
        broker.kill()
        broker.start()
        until(lambda there=there: os.path.isdir(f"{there}/t-0"))
        moved += 1
        records = scan({"bootstrap.servers": broker.bootstrap}, {TopicPartition("t", 0): None})
        assert [int(record.value) for record in records] == list(range(written))
        until(lambda here=here: not [name for name in os.listdir(here) if name.startswith("t-0")])
    broker.stop()
    assert moved == 8

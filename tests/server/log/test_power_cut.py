"""What was synced is there after a power cut, on the simulator's disk: it tears and forgets whatever was not."""

from __future__ import annotations

import uuid

import pytest

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.manager import LogManager
from headrace.wire.records import BatchBuilder
from tests.simulation.network import Network
from tests.simulation.process import Host
from tests.simulation.world import World

TOPIC_ID = uuid.UUID(int=7)


@pytest.fixture(params=range(20))
def host(request: pytest.FixtureRequest) -> Host:
    world = World(request.param)
    return Host(world, "host", "10.0.0.1", Network(world))


def opened(host: Host) -> LogManager:
    process = host.process("broker")
    manager = LogManager(["/data"], environment=Environment(process.files, process.clock))
    manager.open()
    return manager


def test_a_flushed_log_is_still_the_one_of_its_topic(host: Host) -> None:
    manager = opened(host)
    log = manager.create("orders", 0, LogConfig(), TOPIC_ID)
    builder = BatchBuilder()
    builder.append(0, b"key", b"value")
    log.append_as_leader(memoryview(builder.build()), leader_epoch=0)
    log.prepare_flush().run()
    host.lose_power()
    host.boot()
    manager = opened(host)
    log = manager.create("orders", 0, LogConfig(), TOPIC_ID)
    assert manager.topic_id_of(log) == TOPIC_ID
    assert log.log_end_offset == 1

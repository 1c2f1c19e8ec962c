"""A replica that has moved to another data directory is there after a power cut, on the simulator's disk."""

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
    manager = LogManager(["/one", "/two"], environment=Environment(process.files, process.clock))
    manager.open()
    return manager


def batch() -> memoryview:
    builder = BatchBuilder()
    builder.append(0, b"key", b"value")
    return memoryview(builder.build())


@pytest.mark.parametrize("cleared", [False, True])
def test_a_log_that_has_moved_is_there(host: Host, cleared: bool) -> None:
    manager = opened(host)
    host.disk.root.sync()  # The directories themselves were made long ago.
    log = manager.create("orders", 0, LogConfig(), TOPIC_ID)
    log.append_as_leader(batch(), leader_epoch=0)
    log.flush()
    source = manager.directory_of(log)
    target = next(each for each in manager.directories if each is not source)
    copy = manager.futures.create(log, target)
    copy.append_as_follower(memoryview(log.read(0, 1 << 20).read()))
    copy.flush()
    manager.futures.mark_finished(copy)
    manager.put_into_service(log, copy)
    if cleared:
        manager.futures.clear_mark(log.directory)
    log.append_as_leader(batch(), leader_epoch=1)
    log.flush()
    end = log.log_end_offset
    host.lose_power()
    host.boot()
    manager = opened(host)
    log = manager.create("orders", 0, LogConfig(), TOPIC_ID)
    assert log.log_end_offset == end
    assert manager.directory_of(log).path == target.path

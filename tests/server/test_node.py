"""A broker's life when a step of it fails: nothing is left behind, and what was safe stays safe."""

import asyncio
import socket

import pytest

from headrace.server.config.broker import BrokerConfig
from headrace.server.log.directory import CLEAN_STOP
from headrace.server.node import Node


def config(directory, port=0):
    return BrokerConfig.load({}, {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.dirs": str(directory)})


class Broken(Exception):
    pass


def broken(*_):
    raise Broken


async def fail_to_start(directory):
    """A start that fails at its last steps, when the broker is bound, a member and running; returns its port."""
    node = Node(config(directory), dispatcher=broken)
    with pytest.raises(Broken):
        await node.start()
    return node.addresses["PLAINTEXT"][1]


async def test_a_start_that_fails_late_leaves_nothing_behind(tmp_path):
    before = asyncio.all_tasks()
    port = await fail_to_start(tmp_path)
    assert asyncio.all_tasks() == before
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
    second = Node(config(tmp_path, port))
    await second.start()
    await second.stop()


async def test_a_start_that_fails_does_not_cost_the_mark_of_a_clean_stop(tmp_path):
    node = Node(config(tmp_path))
    await node.start()
    await node.stop()
    assert (tmp_path / CLEAN_STOP).exists()
    await fail_to_start(tmp_path)
    assert (tmp_path / CLEAN_STOP).exists()


async def test_a_start_that_fails_does_not_make_a_crash_look_clean(tmp_path):
    node = Node(config(tmp_path))
    await node.start()
    await node.crash()
    await fail_to_start(tmp_path)
    assert not (tmp_path / CLEAN_STOP).exists()


async def test_a_step_of_stopping_that_fails_does_not_keep_the_data_from_the_disk(tmp_path):
    node = Node(config(tmp_path))
    await node.start()

    async def unreachable():
        raise Broken

    node.cluster._store.close = unreachable
    with pytest.raises(Broken):
        await node.stop()
    assert (tmp_path / CLEAN_STOP).exists()
    with pytest.raises(RuntimeError, match="after shutdown"):
        node._disk.submit(print)

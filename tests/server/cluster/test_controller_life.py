"""A controller decides only while it is active, and one that fails makes room for the next."""

import asyncio
from typing import Any

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster import controller as controllers
from headrace.server.cluster import node as nodes
from headrace.server.cluster.controller import Controller
from headrace.server.cluster.decisions import create_topics
from headrace.server.cluster.image import MetadataImage
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableTopic
from tests.server.cluster.nodes import Cluster


async def refused(controller: Controller) -> None:
    with pytest.raises(KafkaError) as caught:
        await controller.decide(create_topics([CreatableTopic("early", 1, 1)]))
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


async def test_a_controller_decides_nothing_before_it_has_read_the_metadata(cluster: Cluster) -> None:
    first = await cluster.start(1)
    elected = Controller(
        cluster.store.connect(), 2, 9, BrokerConfig.load({}), SystemClock(), on_step_down=lambda: None
    )
    assert not elected.active
    await refused(elected)
    assert "early" not in first.image.topics


async def test_a_controller_that_steps_down_while_it_reads_the_metadata_stays_down(cluster: Cluster) -> None:
    await cluster.start(1)
    stepped_down: list[bool] = []
    elected = Controller(
        cluster.store.connect(),
        2,
        9,
        BrokerConfig.load({}),
        SystemClock(),
        on_step_down=lambda: stepped_down.append(True),
    )
    elected.step_down()
    with pytest.raises(KafkaError) as caught:
        await elected.become_controller(MetadataImage())
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert not elected.active
    await refused(elected)
    await elected.stop()
    assert stepped_down == [True]


async def test_a_broker_that_fails_to_become_controller_stands_for_election_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.start(1)
    second = await cluster.start(2)
    await cluster.settled()
    read_registrations = controllers.read_registrations
    failures = iter([True])

    async def fail_once(*args: Any) -> Any:
        if next(failures, False):
            raise RuntimeError("the test says so")
        return await read_registrations(*args)

    monkeypatch.setattr(controllers, "read_registrations", fail_once)
    monkeypatch.setattr(nodes, "FAILED_SECONDS", 0.01)
    await cluster.stop(1)
    await asyncio.wait_for(second.until(lambda image: image.controller_id == 2), 20)
    assert next(failures, None) is None, "it failed once"
    assert second.is_controller

"""A controller that follows another judges by its own settings."""

import asyncio

from headrace.server.cluster.decisions import create_topics
from headrace.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic
from tests.server.cluster.nodes import Cluster


async def test_a_controller_that_allows_unclean_elections_leaves_no_partition_without_a_leader(
    cluster: Cluster,
) -> None:
    first = await cluster.start(1)
    allowing = {"unclean.leader.election.enable": "true"}
    await cluster.start(2, allowing)
    await cluster.start(3)
    wanted = CreatableTopic("orders", -1, -1, [CreatableReplicaAssignment(0, [3, 2])])
    assert first.controller is not None
    (created,) = await first.controller.decide(create_topics([wanted]))
    assert created.error is None, created.error
    await cluster.stop(2)
    await asyncio.wait_for(first.until(lambda image: image.partition("orders", 0).isr == (3,)), 20)
    second = await cluster.start(2, allowing)
    await cluster.stop(3)
    await asyncio.wait_for(first.until(lambda image: image.brokers[3].fenced), 20)
    assert first.image.partition("orders", 0).leader == -1
    await cluster.stop(1)
    await asyncio.wait_for(second.until(lambda image: image.partition("orders", 0).leader == 2), 20)
    assert second.image.partition("orders", 0).isr == (2,)

"""Removing a share group, or its topics, when the share coordinators do not answer at first."""

from __future__ import annotations

import pytest

from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.server.groups.conftest import Harness

GROUP = "workers"


async def test_a_removal_that_failed_is_made_up_for_when_the_group_is_deleted(groups: Harness) -> None:
    share = groups.coordinator.share
    for epoch, topics in ((0, ["payments"]), (-1, None)):
        request = ShareGroupHeartbeatRequest(GROUP, "m", epoch, subscribed_topic_names=topics)
        await share.heartbeat(groups.client(1), request)
    assert len(groups.keeper.states) == 2
    groups.keeper.refuse = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    topic_id = groups.topics.topic_id("payments")
    assert topic_id is not None
    failed = await share.remove_topics(GROUP, [topic_id])
    assert failed[topic_id] is not None
    with pytest.raises(KafkaError):
        await share.delete(GROUP)
    groups.keeper.refuse = None
    await share.delete(GROUP)
    assert groups.keeper.states == {}, "a group of the same name would begin where this one ended"

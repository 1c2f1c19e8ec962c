"""Topics, settings, groups and offsets through plain calls."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from headrace.client import Admin, AsyncAdmin, BrokerError, ConfigError, Consumer, Producer, TopicPartition

NewTopic = Callable[..., str]
Eventually = Callable[[Callable[[], bool]], None]


def test_topics_are_created_described_grown_and_deleted(
    admin: Admin, new_topic: NewTopic, eventually: Eventually
) -> None:
    name = new_topic(2, retention_ms="1000")
    assert [partition.number for partition in admin.topic(name).partitions] == [0, 1]
    assert admin.topic_config(name)["retention.ms"] == "1000"
    admin.set_topic_config(name, {"retention.ms": "2000", "cleanup.policy": "compact"})
    admin.set_topic_config(name, {"cleanup.policy": None})
    settings = admin.topic_config(name)
    assert (settings["retention.ms"], settings["cleanup.policy"]) == ("2000", "delete")
    admin.add_partitions(name, 5)
    eventually(lambda: len(admin.topic(name).partitions) == 5)
    admin.create_topic(name, exist_ok=True)
    with pytest.raises(BrokerError, match=f"creating topic {name} failed"):
        admin.create_topic(name)
    admin.delete_topic(name)
    with pytest.raises(BrokerError, match="create the topic first"):
        admin.delete_topic(name)


def test_looking_at_a_topic_does_not_make_it(admin: Admin) -> None:
    with pytest.raises(BrokerError, match=r"describing topic nowhere failed: .* create the topic first"):
        admin.topic("nowhere")
    with pytest.raises(BrokerError, match="describing topic nowhere failed"):
        admin.partitions_of("nowhere")
    assert "nowhere" not in admin.topics()


def test_offsets_by_place_and_records_deleted(bootstrap: str, admin: Admin, new_topic: NewTopic) -> None:
    name = new_topic()
    partition = TopicPartition(name, 0)
    with Producer(bootstrap) as producer:
        for number in range(10):
            producer.send_and_forget(name, "x", timestamp=1_000_000 + number * 1000)
    assert admin.offsets("earliest", [partition]) == {partition: 0}
    assert admin.offsets("latest", [partition]) == {partition: 10}
    assert admin.offsets(datetime.fromtimestamp(1004.5, UTC), [partition]) == {partition: 5}
    assert admin.offsets(datetime.fromtimestamp(9000, UTC), [partition]) == {partition: 10}
    assert admin.offsets(3, [partition]) == {partition: 3}
    admin.delete_records({partition: 4})
    assert admin.offsets("earliest", [partition]) == {partition: 4}
    with pytest.raises(ConfigError, match="is no place in the log"):
        admin.offsets("middle", [partition])  # type: ignore[arg-type]


def test_a_group_is_described_reset_and_deleted(
    bootstrap: str, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    name = new_topic()
    partition = TopicPartition(name, 0)
    with Producer(bootstrap) as producer:
        for _ in range(10):
            producer.send_and_forget(name, "x")
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(name)
        while not consumer.poll(0.5):
            pass
        described = admin.group(group)
        assert described.state == "stable"
        assert [member.assignment for member in described.members] == [frozenset({partition})]
        with pytest.raises(BrokerError, match=f"setting the offsets of group {group} failed"):
            admin.set_group_offsets(group, {partition: 0})
    assert group in admin.groups()
    assert admin.reset_group(group, "earliest") == {partition: 0}
    assert admin.reset_group(group, "latest", shift=-3) == {partition: 7}
    assert admin.reset_group(group, admin.group_offsets(group), shift=-100) == {partition: 0}
    assert admin.reset_group(group, 99, name) == {partition: 10}
    assert admin.group_offsets(group) == {partition: 10}
    admin.delete_group(group)
    assert group not in admin.groups()
    with pytest.raises(ConfigError, match="name the topics to reset"):
        admin.reset_group(group, "earliest")


def test_a_cluster_that_does_not_answer_is_told_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = f"127.0.0.1:{server.getsockname()[1]}"
        with Admin(silent, default_api_timeout_ms=300) as admin:
            with pytest.raises(BrokerError, match="asking for metadata failed"):
                admin.topics()
            with pytest.raises(BrokerError, match=r"got no answer within 0\.3 s"):
                admin.groups()


async def test_the_asyncio_admin_has_the_same_calls(bootstrap: str, new_topic: NewTopic) -> None:
    public = {name for name in vars(Admin) if not name.startswith("_")} - {"librdkafka"}
    assert public <= set(dir(AsyncAdmin))
    name = new_topic(2)
    async with AsyncAdmin(bootstrap) as admin:
        described, partitions = await asyncio.gather(admin.topic(name), admin.partitions_of(name))
        assert [TopicPartition(name, each.number) for each in described.partitions] == partitions
        await admin.add_partitions(name, 3)
        with pytest.raises(BrokerError, match="creating topic"):
            await admin.create_topic(name)


async def test_closing_twice_is_closing_once_and_after_it_a_sentence() -> None:
    admin = Admin("127.0.0.1:1")
    admin.close()
    admin.close()
    with pytest.raises(ConfigError, match="the admin is closed"):
        admin.topics()
    later = AsyncAdmin("127.0.0.1:1")
    await later.close()
    await later.close()
    with pytest.raises(ConfigError, match="the admin is closed"):
        await later.topics()

"""Diverting by a fresh topic: running producers follow a route, and coming back keeps the order of each key."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from headrace.backlog import Backlogs, State, Way
from headrace.client import Admin, AsyncProducer, BrokerError, Consumer, Producer, TopicPartition
from headrace.client.administration.errors import NotPossible
from headrace.client.control_topic import ControlTopic
from headrace.client.routes import TOPIC, Route
from tests.waiting import PATIENCE, until

Write = Callable[[str, int, int], None]


def read_up(bootstrap: str, group: str, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    """Some records as an unmodified consumer gets them, committed; it leaves the group then."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    found: list[tuple[bytes, bytes]] = []
    consumer.subscribe([topic])

    def all_here() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.key() or b"", message.value() or b""))
        return len(found) >= count

    until(all_here, f"{count} records of {topic}")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


@pytest.fixture
def routed(bootstrap: str) -> Iterator[Producer]:
    with Producer(bootstrap, routes=True) as producer:
        yield producer


def test_running_producers_follow_a_route_and_come_back_and_others_stay(
    bootstrap: str, admin: Admin, group: str, behind: str, routed: Producer
) -> None:
    other = f"{behind}.elsewhere"
    admin.create_topic(other, partitions=2, replication_factor=1)
    routes = ControlTopic(TOPIC, {"bootstrap.servers": bootstrap})
    routes.ensure(admin)
    with Producer(bootstrap) as plain:
        assert routed.send_and_wait(behind, "x").topic == behind
        routes.put(plain, behind, Route(behind, other).as_document())
        until(lambda: routed.send_and_wait(behind, "x", key="k").topic == other, "the route")
        assert routed.send(behind, "x", partition=1).result()[:2] == (other, 1)
        assert plain.send_and_wait(behind, "x").topic == behind
        with Producer(bootstrap, routes=True) as later:
            assert later.send_and_wait(behind, "x").topic == other, "a new producer knows it from the start"
        routes.put(plain, behind, Route(behind, None).as_document())
        until(lambda: routed.send_and_wait(behind, "x").topic == behind, "the end of the route")


async def test_an_asyncio_producer_follows_routes_too(bootstrap: str, admin: Admin, behind: str) -> None:
    other = f"{behind}.elsewhere"
    admin.create_topic(other, partitions=2, replication_factor=1)
    routes = ControlTopic(TOPIC, {"bootstrap.servers": bootstrap})
    routes.ensure(admin)
    with Producer(bootstrap) as plain:
        async with AsyncProducer(bootstrap, routes=True) as producer:
            assert (await producer.send_and_wait(behind, "x")).topic == behind
            routes.put(plain, behind, Route(behind, other).as_document())
            deadline = time.monotonic() + PATIENCE
            while (await producer.send_and_wait(behind, "x")).topic != other:
                assert time.monotonic() < deadline, "the route was not followed"
        async with AsyncProducer(bootstrap, routes=True) as later:
            assert (await later.send_and_wait(behind, "x")).topic == other


def test_a_producer_that_cannot_learn_the_routes_sends_nothing_the_wrong_way(silent: str) -> None:
    producer = Producer(silent, routes=True, max_block_ms=300)
    with pytest.raises(BrokerError, match="routes of topics could not be read"):
        producer.send("orders", "x")
    producer.abandon()


@pytest.fixture
def silent() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_new_records_go_to_the_fresh_topic_and_coming_back_keeps_each_keys_order(
    bootstrap: str, backlogs: Backlogs, admin: Admin, group: str, behind: str, routed: Producer
) -> None:
    divert = backlogs.divert(group, behind, Way.FRESH)
    assert divert.state is State.DIVERTED
    found = admin.group_offsets(group)
    assert {each.partition: at for each, at in found.items() if each.topic == divert.fresh} == {0: 0, 1: 0}
    until(lambda: routed.send_and_wait(behind, "probe", key="p").topic == divert.fresh, "the route")
    for number in range(100, 110):
        assert routed.send_and_wait(behind, str(number), key=f"key-{number % 10}").topic == divert.fresh
    with pytest.raises(NotPossible, match=r"records were written to .* already"):
        backlogs.undo(group, behind, quiet=0.1)

    # Some probes went to the topic before the route was known.
    left = sum(admin.offsets("latest", admin.partitions_of(behind)).values()) - 10
    with pytest.raises(NotPossible, match=f"{left} records of {behind} left to read"):
        backlogs.join(group, behind, quiet=0.1)
    with Consumer(bootstrap, group_id=group, enable_auto_commit=False) as reader:
        reader.subscribe(behind)
        got = 0

        def drained() -> bool:
            nonlocal got
            got += len(reader.poll(0.2))
            return got >= left

        until(drained, "the backlog")
        reader.commit()
        with pytest.raises(NotPossible, match="still reads it"):
            backlogs.join(group, behind, quiet=0.1)
    assert routed.send_and_wait(behind, "110", key="key-0").topic == divert.fresh, "refused means unchanged"

    with pytest.raises(
        NotPossible, match=f"records of {divert.fresh} left to read .*start none of {behind} yet"
    ):
        backlogs.join(group, behind, quiet=0.1)
    until(lambda: routed.send_and_wait(behind, "111", key="key-0").topic == behind, "the way back")
    joined: list[State] = []
    joining = threading.Thread(
        target=lambda: joined.append(backlogs.join(group, behind, quiet=0.1, wait=90).state)
    )
    joining.start()
    in_fresh = sum(admin.offsets("latest", admin.partitions_of(divert.fresh)).values())
    fresh = read_up(bootstrap, group, divert.fresh, in_fresh)
    joining.join()
    assert joined == [State.JOINED]
    after = read_up(bootstrap, group, behind, 1)
    assert [value for key, value in fresh if key == b"key-0"] == [b"100", b"110"]
    assert {value for _, value in after} == {b"111"}

    again = backlogs.diverts(group, behind)[0]
    with backlogs.meter(60.0) as meter:
        assert meter.look(again).notes == ()
        with Producer(bootstrap) as late:
            late.send_and_wait(divert.fresh, "late")
        assert "1 records came to" in meter.look(again).notes[0]


def test_a_consumer_that_begins_at_the_end_skips_no_backlog_of_a_partition_without_a_commit(
    bootstrap: str, backlogs: Backlogs, admin: Admin, behind: str
) -> None:
    group = f"half-{behind}"
    admin.set_group_offsets(group, {TopicPartition(behind, 0): 5})
    divert = backlogs.divert(group, behind, Way.FRESH, other_groups_follow=True)
    ends = admin.offsets("latest", admin.partitions_of(behind))
    places = {each.partition: at for each, at in admin.group_offsets(group).items() if each.topic == behind}
    assert places == {0: 5, 1: 0}
    read_up(bootstrap, group, behind, sum(ends.values()) - 5)
    assert backlogs.join(group, behind, quiet=0.1).state is State.JOINED
    assert divert.before == {0: 5, 1: 0}


def test_a_route_is_refused_while_other_groups_read_the_topic(
    backlogs: Backlogs, admin: Admin, group: str, behind: str
) -> None:
    other = f"shipping-{uuid.uuid4().hex[:6]}"
    admin.set_group_offsets(other, {TopicPartition(behind, 0): 3})
    with pytest.raises(NotPossible, match=f"is read by {other} as well"):
        backlogs.divert(group, behind, Way.FRESH)
    assert backlogs.diverts(group) == []
    divert = backlogs.divert(group, behind, Way.FRESH, other_groups_follow=True)
    with pytest.raises(NotPossible, match=r"is diverted for group .* by fresh already"):
        backlogs.divert(group, behind)
    assert backlogs.undo(group, behind, quiet=0.1).state is State.UNDONE
    assert divert.state is State.DIVERTED


def test_producers_that_do_not_follow_routes_are_noticed(
    bootstrap: str, backlogs: Backlogs, group: str, behind: str
) -> None:
    divert = backlogs.divert(group, behind, Way.FRESH)
    with backlogs.meter(60.0) as meter:
        assert meter.look(divert).notes == ()
        with Producer(bootstrap) as deaf:
            deaf.send_and_wait(behind, "x")
        assert "1 records came to" in meter.look(divert).notes[0]
    backlogs.undo(group, behind, quiet=0.1)

"""The server-side assignors: complete, fair, and sticky where they promise it."""

from __future__ import annotations

import random
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.server.groups.assignors import ASSIGNORS
from headrace.server.groups.assignors.spec import MemberSpec, Partitions

TOPICS = [uuid.UUID(int=n) for n in range(1, 7)]


def spec(topics: list[uuid.UUID], owned: Partitions | None = None, instance: str | None = None) -> MemberSpec:
    return MemberSpec(instance, frozenset(topics), owned or {})


def load(partitions: Partitions) -> int:
    return sum(len(each) for each in partitions.values())


def flatten(partitions: Partitions) -> set[tuple[uuid.UUID, int]]:
    return {(topic, partition) for topic, each in partitions.items() for partition in each}


groups = st.integers(0, 2**32).map(random.Random)


def random_group(rng: random.Random) -> tuple[dict[str, MemberSpec], dict[uuid.UUID, int]]:
    counts = {topic: rng.randint(1, 12) for topic in rng.sample(TOPICS, rng.randint(1, len(TOPICS)))}
    alike = rng.random() < 0.4
    everything = list(counts)
    members = {}
    for number in range(rng.randint(1, 9)):
        chosen = everything if alike else rng.sample(everything, rng.randint(1, len(everything)))
        members[f"member-{number}"] = spec(chosen)
    return members, counts


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(rng=groups)
@settings(max_examples=150, deadline=None)
def test_every_subscribed_partition_goes_to_exactly_one_subscriber(name: str, rng: random.Random) -> None:
    members, counts = random_group(rng)
    assigned = ASSIGNORS[name](members, counts)
    assert set(assigned) == set(members)
    seen: set[tuple[uuid.UUID, int]] = set()
    for member_id, partitions in assigned.items():
        assert set(partitions) <= members[member_id].topics
        assert not seen & flatten(partitions)
        seen |= flatten(partitions)
    subscribed = set().union(*(member.topics for member in members.values()))
    assert seen == {(topic, p) for topic in subscribed for p in range(counts[topic])}


@given(rng=groups)
@settings(max_examples=150, deadline=None)
def test_uniform_leaves_no_move_that_would_make_two_subscribers_more_equal(rng: random.Random) -> None:
    members, counts = random_group(rng)
    assigned = ASSIGNORS["uniform"](members, counts)
    for giver, partitions in assigned.items():
        for topic in partitions:
            for taker, member in members.items():
                if topic in member.topics:
                    assert load(assigned[giver]) - load(assigned[taker]) < 2


@given(rng=groups)
@settings(max_examples=100, deadline=None)
def test_uniform_keeps_an_assignment_that_is_still_right(rng: random.Random) -> None:
    members, counts = random_group(rng)
    first = ASSIGNORS["uniform"](members, counts)
    again = ASSIGNORS["uniform"](
        {member_id: member._replace(owned=first[member_id]) for member_id, member in members.items()}, counts
    )
    assert again == first


def test_uniform_moves_only_the_newcomers_share() -> None:
    topic = TOPICS[0]
    before = ASSIGNORS["uniform"]({"a": spec([topic]), "b": spec([topic])}, {topic: 9})
    members = {"a": spec([topic], before["a"]), "b": spec([topic], before["b"]), "c": spec([topic])}
    after = ASSIGNORS["uniform"](members, {topic: 9})
    assert sorted(load(each) for each in after.values()) == [3, 3, 3]
    assert flatten(after["a"]) < flatten(before["a"])
    assert flatten(after["b"]) < flatten(before["b"])


def test_uniform_gives_a_leavers_partitions_to_the_others_and_moves_nothing_else() -> None:
    topic = TOPICS[0]
    members = {name: spec([topic]) for name in "abc"}
    before = ASSIGNORS["uniform"](members, {topic: 10})
    left = {name: spec([topic], before[name]) for name in "ac"}
    after = ASSIGNORS["uniform"](left, {topic: 10})
    assert flatten(before["a"]) <= flatten(after["a"])
    assert flatten(before["c"]) <= flatten(after["c"])
    assert [load(after["a"]), load(after["c"])] == [5, 5]


def test_range_cuts_topics_of_the_same_size_in_the_same_places() -> None:
    members = {name: spec(TOPICS[:2]) for name in "abc"}
    assigned = ASSIGNORS["range"](members, {TOPICS[0]: 7, TOPICS[1]: 7})
    for partitions in assigned.values():
        assert partitions[TOPICS[0]] == partitions[TOPICS[1]]
    assert [sorted(assigned[name][TOPICS[0]]) for name in "abc"] == [[0, 1, 2], [3, 4], [5, 6]]


def test_range_orders_static_members_by_instance_so_that_a_new_member_id_moves_nothing() -> None:
    topic = TOPICS[0]
    before = ASSIGNORS["range"](
        {"z": spec([topic], instance="i1"), "a": spec([topic], instance="i2")}, {topic: 4}
    )
    after = ASSIGNORS["range"](
        {"0": spec([topic], instance="i2"), "9": spec([topic], instance="i1")}, {topic: 4}
    )
    assert before["z"] == after["9"]
    assert before["a"] == after["0"]

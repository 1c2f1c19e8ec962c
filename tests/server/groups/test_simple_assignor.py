"""The assignor of share groups: everybody has something to do, every partition has somebody, and little moves."""

from __future__ import annotations

import uuid

from hypothesis import example, given
from hypothesis import strategies as st

from headrace.server.groups.assignors.simple import Subscriber, assign_simple
from headrace.server.groups.assignors.spec import Partitions

ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)


def same(count: int, had: dict[str, Partitions] | None = None) -> dict[str, Subscriber]:
    names = [f"m{number:03}" for number in range(count)]
    return {name: Subscriber(frozenset({ONE}), (had or {}).get(name, {})) for name in names}


def holders(assignment: dict[str, Partitions]) -> dict[tuple[uuid.UUID, int], list[str]]:
    found: dict[tuple[uuid.UUID, int], list[str]] = {}
    for name, partitions in assignment.items():
        for topic, indexes in partitions.items():
            for index in indexes:
                found.setdefault((topic, index), []).append(name)
    return found


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
@example(4, 3, 4, 2)
@example(5, 4, 5, 3)
def test_members_with_the_same_topics_share_them_evenly_whatever_was_before(
    members: int, partitions: int, before_members: int, before_partitions: int
) -> None:
    before = assign_simple(same(before_members), {ONE: range(before_partitions)})
    assignment = assign_simple(same(members, before), {ONE: range(partitions)})
    shared = holders(assignment)
    assert len(shared) == partitions, "every partition has a member"
    held = [sum(map(len, each.values())) for each in assignment.values()]
    if members >= partitions:
        assert set(held) == {1}
        loads = [len(each) for each in shared.values()]
    else:
        assert all(len(each) == 1 for each in shared.values())
        loads = held
    assert max(loads) - min(loads) <= 1
    assert assign_simple(same(members, assignment), {ONE: range(partitions)}) == assignment, "it is stable"


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.sets(st.sampled_from([ONE, TWO])).map(frozenset), min_size=1
    ),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_whatever_members_subscribe_to_nobody_and_nothing_is_left_out(
    topics: dict[str, frozenset[uuid.UUID]], ones: int, twos: int
) -> None:
    members = {name: Subscriber(each, {}) for name, each in topics.items()}
    partitions = {ONE: range(ones), TWO: range(twos)}
    assignment = assign_simple(members, partitions)
    shared = holders(assignment)
    for topic, indexes in partitions.items():
        subscribed = any(topic in each for each in topics.values())
        assert {index for each, index in shared if each == topic} == (set(indexes) if subscribed else set())
    for name, each in topics.items():
        assert set(assignment[name]) <= each
        assert assignment[name] or not any(partitions[topic] for topic in each)


def test_a_member_that_joins_moves_only_what_it_gets() -> None:
    before = assign_simple(same(2), {ONE: range(4)})
    after = assign_simple(same(3, before), {ONE: range(4)})
    for name in before:
        assert after[name][ONE] <= before[name][ONE]

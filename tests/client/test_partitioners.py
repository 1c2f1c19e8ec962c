"""Where records go: the same place as Java's client, evenly, and with few moves when partitions are added."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as reference_murmur2

from headrace.client import ConfigError, ConsistentHash, HashSlots, Murmur2, RoundRobin, Sticky
from headrace.client.partitioners import KEYED, PARTITIONERS, named, simulate

KEYS = [b"customer-%d" % number for number in range(20_000)]


@pytest.mark.parametrize(
    ("key", "java_hash"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_places_keys_where_kafkas_java_client_does(key: bytes, java_hash: int) -> None:
    for partitions in (1, 2, 3, 7, 50):
        assert Murmur2().partition("t", key, 0, partitions) == (java_hash & 0x7FFFFFFF) % partitions


@settings(deadline=None, max_examples=50)
@given(key=st.binary(max_size=64), partitions=st.integers(1, 1000))
def test_murmur2_agrees_with_an_independent_implementation(key: bytes, partitions: int) -> None:
    expected = (reference_murmur2(key) & 0x7FFFFFFF) % partitions
    assert Murmur2().partition("t", key, 0, partitions) == expected


@settings(deadline=None, max_examples=50)
@given(name=st.sampled_from(KEYED), key=st.binary(max_size=32), partitions=st.integers(1, 200))
def test_a_key_always_goes_to_the_same_existing_partition(name: str, key: bytes, partitions: int) -> None:
    first = named(name).partition("t", key, 10, partitions)
    assert 0 <= first < partitions
    assert named(name).partition("t", key, 10, partitions) == first


def test_round_robin_visits_every_partition_in_turn_and_per_topic() -> None:
    partitioner = RoundRobin()
    assert [partitioner.partition("a", b"same", 1, 3) for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    assert partitioner.partition("b", None, 1, 3) == 0


def test_sticky_fills_a_batch_before_it_moves_to_another_partition() -> None:
    partitioner = Sticky(batch_size=100)
    chosen = [partitioner.partition("t", None, 25, 4) for _ in range(400)]
    batches = [chosen[at : at + 4] for at in range(0, 400, 4)]
    assert all(len(set(batch)) == 1 for batch in batches)
    assert all(before[0] != after[0] for before, after in pairwise(batches))
    assert set(chosen) == {0, 1, 2, 3}


def test_records_without_a_key_are_spread_by_every_keyed_partitioner() -> None:
    for name in KEYED:
        partitioner = named(name)
        assert len({partitioner.partition("t", None, 20_000, 6) for _ in range(200)}) == 6


@pytest.mark.parametrize(("before", "after"), [(1, 2), (6, 7), (6, 8), (12, 24), (50, 51)])
def test_hash_slots_move_the_fewest_keys_and_only_to_the_new_partitions(before: int, after: int) -> None:
    partitioner = HashSlots()
    for key in KEYS:
        old, new = (partitioner.partition("t", key, 0, count) for count in (before, after))
        assert new == old or new >= before
    result = simulate(partitioner, KEYS, before, after)
    assert result.moved_share == pytest.approx(result.fewest_share, abs=0.02)
    assert result.imbalance_after < 1.35


@pytest.mark.parametrize(("before", "after"), [(1, 2), (6, 8), (50, 51)])
def test_consistent_hashing_moves_keys_only_to_the_new_partitions(before: int, after: int) -> None:
    partitioner = ConsistentHash()
    for key in KEYS:
        old, new = (partitioner.partition("t", key, 0, count) for count in (before, after))
        assert new == old or new >= before
    result = simulate(partitioner, KEYS, before, after)
    assert result.moved_share < result.fewest_share * 1.5


def test_the_plain_hash_moves_most_keys_which_is_why_the_others_exist() -> None:
    assert simulate(Murmur2(), KEYS, 6, 8).moved_share == pytest.approx(0.75, abs=0.02)


def test_slots_are_shared_to_within_one() -> None:
    slots = HashSlots(slots=1000)
    for partitions in (1, 3, 7, 64, 1000):
        owners = Counter(slots.partition("t", b"%d" % key, 0, partitions) for key in range(50_000))
        assert set(owners) <= set(range(partitions))
    with pytest.raises(ConfigError, match="more slots"):
        slots.partition("t", b"x", 0, 1001)


def test_a_simulation_counts_each_key_once_and_knows_nothing_moves_when_nothing_changes() -> None:
    result = simulate(Murmur2(), [b"a", b"a", b"b"], 4, 4)
    assert (result.keys, result.moved) == (2, 0)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="murmur2, hash_slots, consistent_hash, round_robin, sticky"):
        named("best")
    assert isinstance(named("org.apache.kafka.clients.producer.RoundRobinPartitioner"), RoundRobin)
    assert set(PARTITIONERS) == {"murmur2", "hash_slots", "consistent_hash", "round_robin", "sticky"}

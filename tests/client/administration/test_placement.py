"""Plans of moves: as few as it takes, in different racks, evenly."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.administration.placement import Place, TooFewBrokers, plan


def arrivals(current, target):
    return sum(len(set(replicas) - set(current[key])) for key, replicas in target.items())


def held(target):
    return Counter(broker for replicas in target.values() for broker in replicas)


def spread(partitions, brokers, factor, topic="t"):
    return {(topic, p): [brokers[(p + i) % len(brokers)] for i in range(factor)] for p in range(partitions)}


def test_what_is_even_stays():
    current = spread(6, [1, 2, 3], 2)
    assert plan(current, [Place(1), Place(2), Place(3)]) == current


def test_a_new_broker_takes_its_share_and_nothing_else_moves():
    current = spread(12, [1, 2, 3], 2)
    target = plan(current, [Place(1), Place(2), Place(3), Place(4)])
    assert held(target) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert arrivals(current, target) == 6
    assert Counter(replicas[0] for replicas in target.values()) == {1: 3, 2: 3, 3: 3, 4: 3}


def test_a_removed_broker_is_emptied_and_only_its_replicas_move():
    current = spread(12, [1, 2, 3, 4], 2)
    target = plan(current, [Place(1), Place(2), Place(3)])
    assert held(target) == {1: 8, 2: 8, 3: 8}
    assert arrivals(current, target) == 6


def test_a_broker_that_is_down_keeps_what_it_has_and_gets_nothing_new():
    current = spread(6, [1, 2, 3], 2)
    target = plan(current, [Place(1), Place(2), Place(3, live=False), Place(4)])
    for key, replicas in current.items():
        if 3 in replicas:
            assert 3 in target[key]
    assert held(target)[3] == held(current)[3]


def test_more_replicas_go_to_other_racks():
    places = [Place(1, "a"), Place(2, "a"), Place(3, "b"), Place(4, "b")]
    target = plan({("t", 0): [1], ("t", 1): [3]}, places, 2)
    rack = {place.broker: place.rack for place in places}
    assert all({rack[broker] for broker in replicas} == {"a", "b"} for replicas in target.values())
    assert target["t", 0][0] in (1, 3)


def test_fewer_replicas_drop_the_one_that_shares_a_rack():
    places = [Place(1, "a"), Place(2, "a"), Place(3, "b")]
    assert plan({("t", 0): [1, 2, 3]}, places, 2) == {("t", 0): [1, 3]}


def test_replicas_that_share_a_rack_are_parted():
    places = [Place(1, "a"), Place(2, "a"), Place(3, "b")]
    assert plan({("t", 0): [1, 2]}, places) == {("t", 0): [1, 3]}


def test_the_rest_of_the_cluster_weighs_in():
    other = {("other", p): [1] for p in range(4)}
    target = plan({("t", 0): [1], ("t", 1): [1]}, [Place(1), Place(2)], fixed=other)
    assert held(target) == {2: 2}


def test_more_replicas_than_brokers_are_refused():
    with pytest.raises(TooFewBrokers, match="only 2 live ones"):
        plan({("t", 0): [1]}, [Place(1), Place(2), Place(3, live=False)], 3)


@given(
    brokers=st.lists(st.sampled_from("abc"), min_size=1, max_size=7),
    assignments=st.lists(
        st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True), min_size=1, max_size=20
    ),
    factor=st.none() | st.integers(1, 3),
)
def test_every_plan_is_sound(brokers, assignments, factor):
    places = [Place(number, rack) for number, rack in enumerate(brokers, 1)]
    current = {(f"t{number % 3}", number): replicas for number, replicas in enumerate(assignments)}
    largest = factor or max(map(len, assignments))
    if largest > len(places):
        with pytest.raises(TooFewBrokers):
            plan(current, places, factor)
        return
    target = plan(current, places, factor)
    rack = {place.broker: place.rack for place in places}
    for key, replicas in target.items():
        wanted = factor or len(current[key])
        assert len(replicas) == len(set(replicas)) == wanted
        assert set(replicas) <= set(rack)
        assert len({rack[broker] for broker in replicas}) == min(wanted, len(set(brokers)))
    if len(set(brokers)) == 1:
        counts = [held(target)[place.broker] for place in places]
        assert max(counts) - min(counts) <= 1

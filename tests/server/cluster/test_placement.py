from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.server.cluster.changes import TopicCreated
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.ids import random_id
from headrace.server.cluster.image import Broker, MetadataImage, Partition, Topic
from headrace.server.cluster.placement import Load, place
from headrace.wire.errors import ErrorCode, KafkaError

ImageOf = Callable[[Iterable[Broker]], MetadataImage]


def spread(counts: Counter[int], brokers: Iterable[int]) -> int:
    values = [counts[broker] for broker in brokers]
    return max(values) - min(values)


def brokers_in(racks: Iterable[str | None]) -> list[Broker]:
    return [Broker(number, 1, (), rack) for number, rack in enumerate(racks)]


@given(brokers=st.integers(1, 9), partitions=st.integers(1, 60), data=st.data())
def test_leaders_and_replicas_are_even_whatever_the_ratio(
    brokers: int, partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, brokers))
    alive = brokers_in([None] * brokers)
    placed = place(alive, Load(MetadataImage()), partitions, factor)
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    replicas = Counter(broker for chosen in placed for broker in chosen)
    assert spread(leaders, range(brokers)) <= 1
    assert spread(replicas, range(brokers)) <= 1


@given(sizes=st.lists(st.integers(1, 7), min_size=1, max_size=25), brokers=st.integers(1, 6), data=st.data())
def test_many_topics_are_even_together(sizes: list[int], brokers: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, brokers))
    image = MetadataImage()
    alive = brokers_in([None] * brokers)
    leaders: Counter[int] = Counter()
    for number, size in enumerate(sizes):
        placed = place(alive, Load(image), size, factor)
        leaders.update(replicas[0] for replicas in placed)
        topic = Topic(
            f"t{number}",
            random_id(),
            tuple(Partition(replicas, replicas, replicas[0]) for replicas in placed),
        )
        image = apply_changes(image, number, [TopicCreated(topic)])
    assert spread(leaders, range(brokers)) <= 1


@given(
    racks=st.lists(st.sampled_from("abc"), min_size=3, max_size=9),
    partitions=st.integers(1, 40),
    data=st.data(),
)
def test_replicas_of_a_partition_stand_in_different_racks(
    racks: list[str], partitions: int, data: st.DataObject
) -> None:
    alive = brokers_in(racks)
    factor = data.draw(st.integers(1, len(racks)))
    rack_of = {broker.id: broker.rack for broker in alive}
    placed = place(alive, Load(MetadataImage()), partitions, factor)
    for replicas in placed:
        used = {rack_of[broker] for broker in replicas}
        assert len(used) == min(factor, len(set(racks)))
    assert spread(Counter(replicas[0] for replicas in placed), range(len(racks))) <= 1


def test_equal_racks_are_filled_evenly() -> None:
    placed = place(brokers_in("aabbcc"), Load(MetadataImage()), 24, 3)
    counts = Counter(broker for replicas in placed for broker in replicas)
    assert spread(counts, range(6)) <= 1


def test_machines_come_after_racks() -> None:
    alive = [Broker(number, 1, (), None, host) for number, host in enumerate(["x", "x", "y", "y"])]
    for replicas in place(alive, Load(MetadataImage()), 12, 2):
        assert {alive[broker].host for broker in replicas} == {"x", "y"}


@pytest.mark.parametrize(("brokers", "factor"), [(3, 3), (4, 2), (4, 3), (5, 3), (6, 2)])
def test_when_a_broker_dies_the_others_share_what_it_led(brokers: int, factor: int) -> None:
    partitions = brokers * (brokers - 1) * 2
    placed = place(brokers_in([None] * brokers), Load(MetadataImage()), partitions, factor)
    for dead in range(brokers):
        heirs = Counter(replicas[1] for replicas in placed if replicas[0] == dead)
        assert len(heirs) >= min(brokers - 1, 2)
        assert max(heirs.values()) <= 2 * partitions / brokers / (brokers - 1) + 1


def test_too_many_replicas_are_refused_with_the_number_of_live_brokers(image_of: ImageOf) -> None:
    with pytest.raises(KafkaError) as caught:
        place(brokers_in([None]), Load(MetadataImage()), 1, 3)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert (
        "replication factor of 3 cannot be reached because only 1 broker(s) are live" in caught.value.message
    )


def test_fenced_and_stopping_brokers_get_nothing(broker: Callable[..., Broker]) -> None:
    alive = [broker(1), broker(2, fenced=True), broker(3, in_controlled_shutdown=True)]
    assert place(alive, Load(MetadataImage()), 2, 1) == [(1,), (1,)]
    with pytest.raises(KafkaError, match="fenced or in controlled shutdown"):
        place(alive[1:], Load(MetadataImage()), 1, 1)


def test_a_cordoned_broker_gets_no_replicas():
    brokers = brokers_in([None] * 3)  # 0, 1 and 2
    placed = place(brokers, Load(MetadataImage()), 6, 2, cordoned={2})
    assert all(2 not in replicas for replicas in placed)
    with pytest.raises(KafkaError, match=r"only 2 broker.* not cordoned; 1 have"):
        place(brokers, Load(MetadataImage()), 1, 3, cordoned={2})
    with pytest.raises(KafkaError, match="all their log directories cordoned"):
        place(brokers, Load(MetadataImage()), 1, 1, cordoned={0, 1, 2})

"""What a consumer was told to read, and what a read does then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.client import ConfigError, Consumer, Producer, TopicPartition
from headrace.client.consumer_states import TRANSITIONS, Event, State


def test_every_state_says_what_each_event_makes_of_it() -> None:
    assert set(TRANSITIONS) == set(State)
    assert all(ways.keys() == set(Event) for ways in TRANSITIONS.values())


def test_nothing_leads_out_of_a_closed_consumer() -> None:
    assert set(TRANSITIONS[State.CLOSED].values()) == {State.CLOSED}


def test_a_consumer_that_was_told_nothing_to_read_says_so(bootstrap: str, group: str) -> None:
    with Consumer(bootstrap, group_id=group) as consumer:
        for tell_nothing in (lambda: None, consumer.unsubscribe):
            tell_nothing()
            with pytest.raises(ConfigError, match="call subscribe or assign first"):
                consumer.poll(0)


def test_an_unsubscribed_consumer_returns_nothing_until_it_is_told_what_to_read(
    bootstrap: str, new_topic: Callable[..., str], group: str
) -> None:
    topic = new_topic(1)
    with Producer(bootstrap) as producer:
        producer.send_and_forget(topic, "a")
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic)
        consumer.unsubscribe()
        assert consumer.poll(0.2) == []
        consumer.assign({TopicPartition(topic, 0): 0})
        records = []
        while not records:
            records = consumer.poll(0.5)
        assert [record.value for record in records] == [b"a"]

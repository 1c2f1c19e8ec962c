"""The life of a consumer, drawn: what it was asked to read, and its states.

A NEW consumer has nothing to read, and reading from it is an error of the program. One that was UNSUBSCRIBED may be read
from and returns nothing; what a program assigned itself stays assigned then. The last of subscribe and assign counts. A CLOSED
consumer never comes back: librdkafka refuses whatever is asked of it.
"""

from __future__ import annotations

from enum import Enum, auto


class State(Enum):
    NEW = auto()
    SUBSCRIBED = auto()
    ASSIGNED = auto()
    UNSUBSCRIBED = auto()
    CLOSED = auto()


class Event(Enum):
    SUBSCRIBE = auto()
    ASSIGN = auto()
    UNSUBSCRIBE = auto()
    CLOSE = auto()


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.NEW: {
        Event.SUBSCRIBE: State.SUBSCRIBED,
        Event.ASSIGN: State.ASSIGNED,
        Event.UNSUBSCRIBE: State.NEW,
        Event.CLOSE: State.CLOSED,
    },
    State.SUBSCRIBED: {
        Event.SUBSCRIBE: State.SUBSCRIBED,
        Event.ASSIGN: State.ASSIGNED,
        Event.UNSUBSCRIBE: State.UNSUBSCRIBED,
        Event.CLOSE: State.CLOSED,
    },
    State.ASSIGNED: {
        Event.SUBSCRIBE: State.SUBSCRIBED,
        Event.ASSIGN: State.ASSIGNED,
        Event.UNSUBSCRIBE: State.ASSIGNED,
        Event.CLOSE: State.CLOSED,
    },
    State.UNSUBSCRIBED: {
        Event.SUBSCRIBE: State.SUBSCRIBED,
        Event.ASSIGN: State.ASSIGNED,
        Event.UNSUBSCRIBE: State.UNSUBSCRIBED,
        Event.CLOSE: State.CLOSED,
    },
    State.CLOSED: dict.fromkeys(Event, State.CLOSED),
}

"""Where records for a topic go instead, in the compacted topic `__headrace_routes`; running producers follow within a second.

A producer made with ``routes=True`` has a `Routes`: one thread with a connection of its own reads the topic, and sending looks a topic
up in a dictionary, which is empty as long as nothing is routed. Other producers pay nothing and follow no route.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError, ClientError
from headrace.client.record import Record, TopicPartition
from headrace.client.repeats import Repeats

TOPIC = "__headrace_routes"
_THERE = TopicPartition(TOPIC, 0)
_LOOK_AGAIN = 0.5
_POLL_SECONDS = 0.25

log = logging.getLogger("headrace.client.routes")
log.addFilter(Repeats())


@dataclass(frozen=True, slots=True)
class Route:
    topic: str
    to: str | None
    """None ends the route."""

    def as_document(self) -> dict[str, Any] | None:
        return None if self.to is None else {"to": self.to}


class Routes:
    """The routes there are now, followed until it is closed."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self._connection = connection_settings(config)
        self._to: dict[str, str] = {}
        self._known = threading.Event()
        self._closed = threading.Event()
        # Of the daemon kind, and it holds no producer: one that is forgotten ends it.
        self._thread = threading.Thread(target=self._follow, name="headrace-routes", daemon=True)
        self._thread.start()

    def of(self, topic: str) -> str:
        """Where a record for this topic goes."""
        return self._to.get(topic, topic) if self._to else topic

    @property
    def known(self) -> bool:
        """Whether the routes have been read once, so that no record goes where it should not by now."""
        return self._known.is_set()

    def await_known(self, patience: float) -> None:
        """Raises BrokerError when the routes could not be read in time."""
        if not self._known.wait(patience):
            raise BrokerError(
                f"the routes of topics could not be read from {TOPIC} within {patience:g} s (max.block.ms): check "
                "bootstrap.servers and that the brokers are running",
                retriable=True,
            )

    def end(self) -> None:
        """Let the thread end, without waiting for it."""
        self._closed.set()

    def close(self) -> None:
        self.end()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                self._read()
            except ClientError as error:
                log.warning("the routes of topics are not known at the moment: %s", error)
                self._closed.wait(_LOOK_AGAIN)

    def _read(self) -> None:
        settings = {
            **self._connection,
            "allow.auto.create.topics": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 250,
        }
        with Consumer[bytes, bytes](settings) as consumer:
            while not self._closed.is_set() and not self._is_there(consumer):
                self._closed.wait(_LOOK_AGAIN)
            consumer.assign({_THERE: 0})
            found: dict[str, str] = {}
            while not self._closed.is_set():
                for record in consumer.poll(_POLL_SECONDS):
                    _take(found, record)
                if _THERE in consumer.ended:
                    # Replaced as a whole: senders in other threads see the old routes or the new ones.
                    if found != self._to:
                        self._to = dict(found)
                    self._known.set()

    def _is_there(self, consumer: Consumer[bytes, bytes]) -> bool:
        """Whether there is such a topic; none means that nothing was ever routed."""
        try:
            found = consumer.librdkafka.list_topics(TOPIC, timeout=2.0).topics[TOPIC]
        except KafkaException:
            return False  # no broker answers: what is known stays
        if found.error is not None or not found.partitions:
            self._known.set()
            return False
        return True


def _take(routes: dict[str, str], record: Record[bytes, bytes]) -> None:
    if record.raw_key is None:
        return
    topic = record.raw_key.decode("utf-8", "replace")
    if record.raw_value is None:
        routes.pop(topic, None)
        return
    try:
        document = json.loads(record.raw_value)
    except ValueError:
        return  # somebody else's record
    if isinstance(document, dict) and isinstance(document.get("to"), str):
        routes[topic] = document["to"]

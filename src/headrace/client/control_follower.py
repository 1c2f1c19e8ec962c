"""A control topic followed while it changes: one thread with a connection of its own, and a table that is never older than a moment.

The topic need not exist yet, and is not made by following it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException

from headrace.client import control_documents
from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.control_documents import Document
from headrace.client.errors import ClientError
from headrace.client.record import TopicPartition
from headrace.client.repeats import Repeats

_LOOK_AGAIN = 0.5
_POLL_SECONDS = 0.25
_ANSWER_SECONDS = 2.0

log = logging.getLogger("headrace.client.control_follower")
log.addFilter(Repeats())

Table = Mapping[str, Document]
"""The newest document of each key."""


class ControlFollower:
    def __init__(self, topic: str, config: Mapping[str, object], changed: Callable[[Table], None]) -> None:
        """``changed`` is called in the thread, with a table that nobody changes any more."""
        self._topic = topic
        self._connection = connection_settings(config)
        self._changed = changed
        self._closed = threading.Event()
        self.known = threading.Event()
        """Set when the topic has been read once, or is not there."""
        self._thread = threading.Thread(target=self._follow, name=f"headrace-{topic.strip('_')}", daemon=True)
        self._thread.start()

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
                log.warning("%s cannot be followed at the moment: %s", self._topic, error)
                self._closed.wait(_LOOK_AGAIN)

    def _read(self) -> None:
        settings = {
            **self._connection,
            "allow.auto.create.topics": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 250,
        }
        there = TopicPartition(self._topic, 0)
        with Consumer[bytes, bytes](settings) as consumer:
            while not self._closed.is_set() and not self._is_there(consumer):
                self._closed.wait(_LOOK_AGAIN)
            consumer.assign({there: 0})
            found: dict[str, Document] = {}
            told: dict[str, Document] = {}
            while not self._closed.is_set():
                for key, document in control_documents.read(consumer.poll(_POLL_SECONDS)):
                    if document is None:
                        found.pop(key, None)
                    else:
                        found[key] = document
                if there in consumer.ended:
                    if found != told or not self.known.is_set():
                        told = dict(found)
                        self._changed(told)
                    self.known.set()

    def _is_there(self, consumer: Consumer[bytes, bytes]) -> bool:
        try:
            found = consumer.librdkafka.list_topics(self._topic, timeout=_ANSWER_SECONDS).topics[self._topic]
        except KafkaException:
            return False  # no broker answers: what is known stays
        if found.error is not None or not found.partitions:
            self.known.set()
            return False
        return True

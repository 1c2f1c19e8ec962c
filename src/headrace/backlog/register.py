"""The diverts there are, in the compacted topic `__headrace_backlogs`; a command that changes one fences the command before it.

A writer is a transactional producer named after the divert. When a second command takes it over, the first one's next step fails
with a sentence instead of being written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headrace.backlog.divert import Divert
from headrace.client.admin import Admin
from headrace.client.administration.errors import NotPossible
from headrace.client.control_topic import ControlTopic
from headrace.client.errors import FencedError
from headrace.client.producer import Producer
from headrace.client.routes import TOPIC as ROUTES
from headrace.client.routes import Route
from headrace.client.runner.stepping_aside import TOPIC as TOPIC


class Register:
    def __init__(self, connection: Mapping[str, object], admin: Admin) -> None:
        self._connection = connection
        self._admin = admin
        self._topic = ControlTopic(TOPIC, connection)
        self._routes = ControlTopic(ROUTES, connection)

    def all(self) -> list[Divert]:
        found = (Divert.from_document(each) for each in self._topic.read(self._admin).values())
        return sorted(
            (each for each in found if each is not None), key=lambda divert: (divert.group, divert.topic)
        )

    def find(self, group: str, topic: str) -> Divert | None:
        return next((each for each in self.all() if (each.group, each.topic) == (group, topic)), None)

    @contextmanager
    def writing(self, group: str, topic: str) -> Iterator[Writer]:
        """Be the one who changes this divert, until somebody else does."""
        self._topic.ensure(self._admin)
        self._routes.ensure(self._admin)
        name = f"headrace-backlog-{group}-{topic}"
        with Producer[bytes, bytes](
            dict(self._connection), delivery="exactly_once", transactional_id=name
        ) as producer:
            writer = Writer(self._topic, self._routes, producer)
            writer.take_over()
            yield writer


class Writer:
    def __init__(self, topic: ControlTopic, routes: ControlTopic, producer: Producer[bytes, bytes]) -> None:
        self._topic = topic
        self._routes = routes
        self._producer = producer

    def take_over(self) -> None:
        """From here on, what others were about to write is refused."""
        with self._producer.transaction():
            pass

    def put(self, divert: Divert, *routes: Route) -> Divert:
        """Returns it when it is written, and with it the routes: all or nothing."""
        try:
            with self._producer.transaction():
                for route in routes:
                    self._routes.put(self._producer, route.topic, route.as_document())
                # The name of a topic has no slash, that of a group may.
                self._topic.put(self._producer, f"{divert.topic}/{divert.group}", divert.as_document())
        except FencedError:
            raise NotPossible(
                f"Another 'headrace backlog' command for group {divert.group} and topic {divert.topic} has taken over from this one."
            ) from None
        return divert

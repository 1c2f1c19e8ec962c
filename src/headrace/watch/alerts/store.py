"""Where alerts, silences and history are kept: compacted control topics, and nowhere else.

Alerts and history have one writer, the acting instance, whose transactions fence the one before it. Silences are written by commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client.admin import Admin, session_of
from headrace.client.administration import offsets
from headrace.client.config import connection_settings
from headrace.client.control_documents import Document
from headrace.client.control_topic import ControlTopic
from headrace.client.producer import Producer
from headrace.watch.alerts.history import Event
from headrace.watch.alerts.silences import Silence
from headrace.watch.alerts.states import Alert

ALERTS = "__headrace_alerts"
SILENCES = "__headrace_alerts_silences"
HISTORY = "__headrace_alerts_history"
_ALERT, _ACTING = "alert/", "acting"
_WRITE_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Acting:
    """The instance that acts, and what it has delivered since."""

    instance: str
    since: float
    delivered: int = 0
    failed: int = 0

    def as_document(self) -> Document:
        return {
            "instance": self.instance,
            "since": self.since,
            "delivered": self.delivered,
            "failed": self.failed,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> Acting | None:
        try:
            return None if document is None else cls(**document)
        except TypeError:
            return None  # of another version


@dataclass(frozen=True, slots=True)
class Stored:
    alerts: dict[str, Alert]
    acting: Acting | None


class Store:
    def __init__(self, config: Mapping[str, object]) -> None:
        self._connection = connection_settings(config)
        self._alerts, self._silences, self._history = (
            ControlTopic(name, self._connection) for name in (ALERTS, SILENCES, HISTORY)
        )

    def ensure(self, admin: Admin) -> None:
        for topic in (self._alerts, self._silences, self._history):
            topic.ensure(admin)

    def read(self, admin: Admin) -> Stored:
        documents = self._alerts.read(admin)
        found = (
            Alert.from_document(document) for key, document in documents.items() if key.startswith(_ALERT)
        )
        alerts = {alert.key: alert for alert in found if alert is not None}
        return Stored(alerts, Acting.from_document(documents.get(_ACTING)))

    def history(self, admin: Admin) -> list[Event]:
        """From the oldest to the newest."""
        found = (Event.from_document(each) for each in self._history.read(admin).values())
        return sorted((each for each in found if each is not None), key=lambda event: event.number)

    def silences(self, admin: Admin) -> list[Silence]:
        found = (Silence.from_document(each) for each in self._silences.read(admin).values())
        return sorted((each for each in found if each is not None), key=lambda each: each.created)

    def silences_end(self, admin: Admin) -> int | None:
        """Changes with every change of the silences; None while there is no topic for them."""
        found, _ = offsets.list_offsets(session_of(admin), [(SILENCES, 0)], offsets.LATEST)
        return found.get((SILENCES, 0))

    def put_silence(self, producer: Producer[Any, Any], silence: Silence) -> None:
        self._silences.put(producer, silence.id, silence.as_document())

    def remove_silence(self, producer: Producer[Any, Any], silence_id: str) -> None:
        self._silences.put(producer, silence_id, None)

    def writer(self) -> Writer:
        return Writer(self._connection, self._alerts, self._history)


class Writer:
    """The acting instance's. A newer one fences it: then `write` raises FencedError, and nothing more is written."""

    def __init__(self, connection: Mapping[str, object], alerts: ControlTopic, history: ControlTopic) -> None:
        self._alerts = alerts
        self._history = history
        self._producer: Producer[bytes, bytes] = Producer(
            {
                **connection,
                "transactional.id": ALERTS,
                "transaction.timeout.ms": _WRITE_TIMEOUT_MS,
                "socket.timeout.ms": _WRITE_TIMEOUT_MS,
                "linger.ms": 5,
            }
        )

    def write(self, acting: Acting, alerts: Mapping[str, Alert | None], events: Iterable[Event]) -> None:
        """All of it or nothing; the first write also fences older writers."""
        with self._producer.transaction():
            # Not one is waited for: the commit waits for all, and fails when one has failed.
            self._alerts.send(self._producer, _ACTING, acting.as_document())
            for key, alert in alerts.items():
                self._alerts.send(
                    self._producer, _ALERT + key, None if alert is None else alert.as_document()
                )
            for event in events:
                self._history.send(self._producer, event.key, event.as_document())

    def close(self) -> None:
        self._producer.abandon()

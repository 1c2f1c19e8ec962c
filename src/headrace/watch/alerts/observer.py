"""Looks at the cluster again and again in its own thread: asking one that is down takes long, and notices must not wait for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from headrace.client.admin import Admin, session_of
from headrace.client.administration import brokers, groups
from headrace.client.administration.lag import ONE_RECORD
from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientError, ConfigError
from headrace.client.lag import GroupLag, LagMeter
from headrace.link.settings import KafkaSettings, SettingsError
from headrace.link.tls import Tls
from headrace.watch.alerts.conditions import (
    BrokerMissing,
    CertificateExpiry,
    ClusterAway,
    DeadLetters,
    DiskFilling,
    NoController,
    OfflinePartitions,
    OfGroups,
    UnderMinIsr,
    UnderReplicated,
)
from headrace.watch.alerts.declared import Declaration, Rule
from headrace.watch.alerts.measures import certificates, dead_letters, health, lag
from headrace.watch.alerts.measures.disks import Disks
from headrace.watch.alerts.sight import Lags, Sight
from headrace.watch.alerts.silences import Silence
from headrace.watch.alerts.states import Finding
from headrace.watch.alerts.store import Store

log = logging.getLogger("headrace.alerts")

_PATIENCE = (2.0, 10.0)
"""Seconds, at least and at most: a broker that takes longer, or longer than an interval, is missing data."""
_FORGET_AFTER = 3600.0
"""Seconds after which a group that has vanished is none any more."""
_MOST_REFUSALS = 3
"""Of groups in one look: each may take as long as a broker that does not answer."""


@dataclass(frozen=True, slots=True)
class Look:
    at: float
    away: str | None = None
    """Why no broker answered."""
    cluster: str = ""
    findings: Mapping[str, list[Finding]] = field(default_factory=dict)
    """By rule; a rule without an entry has no data."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """By rule: why there is none."""
    silences: tuple[Silence, ...] | None = None
    """None when they could not be read."""


class Observer:
    """One connection to the cluster, and what its rules remember between two looks. Use it from one thread."""

    def __init__(self, declaration: Declaration, config: Mapping[str, object]) -> None:
        self._declaration = declaration
        connection = connection_settings(config)
        self._tls = _tls(connection)
        least, most = _PATIENCE
        patience = int(1000 * min(most, max(least, declaration.interval)))
        self._admin = Admin({**connection, "request.timeout.ms": patience}, default_api_timeout_ms=patience)
        self._session = session_of(self._admin)
        self._consumer: Consumer[bytes, bytes] = Consumer({**connection, **ONE_RECORD})
        self._meter = LagMeter(self._session, self._consumer.librdkafka, declaration.window)
        self._store = Store(connection)
        self._disks: dict[str, Disks] = {}
        self._vanished: dict[str, float] = {}
        self._groups: set[str] = set()
        self._silences: tuple[int | None, tuple[Silence, ...]] = (None, ())

    def look(self) -> Look:
        """Never raises for what a cluster does or does not do."""
        now = time.time()
        self._session.look_again()
        try:
            cluster = brokers.describe(self._session).cluster_id
        except ClientError as error:
            return Look(now, away=str(error).rstrip("."))
        sight = Sight(self._session, now, partial(self._lags, now))
        findings: dict[str, list[Finding]] = {}
        missing: dict[str, str] = {}
        for rule in self._declaration.rules:
            if isinstance(rule.condition, ClusterAway):
                continue
            try:
                findings[rule.name] = self._measure(rule, sight)
            except ClientError as error:
                missing[rule.name] = str(error).rstrip(".")
            except Exception as error:  # a mistake of ours in one rule must not end the others
                log.exception("the rule %s could not be judged", rule.name)
                missing[rule.name] = f"{type(error).__name__} in the rule's measure"
        return Look(now, None, cluster, findings, missing, self._read_silences())

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()

    @property
    def admin(self) -> Admin:
        return self._admin

    def _measure(self, rule: Rule, sight: Sight) -> list[Finding]:
        match rule.condition:
            case OfGroups() as condition:
                return lag.findings(condition, sight)
            case UnderReplicated() as condition:
                return health.under_replicated(condition, sight)
            case UnderMinIsr() as condition:
                return health.under_min_isr(condition, sight)
            case OfflinePartitions() as condition:
                return health.offline(condition, sight)
            case BrokerMissing() as condition:
                return health.brokers(condition, sight)
            case NoController() as condition:
                return health.no_controller(condition, sight)
            case DeadLetters() as condition:
                return dead_letters.findings(condition, sight)
            case DiskFilling() as condition:
                return self._disks.setdefault(rule.name, Disks()).findings(condition, sight)
            case CertificateExpiry() as condition:
                return certificates.findings(condition, sight, self._tls)
            case other:
                raise ConfigError(f"the kind {other.kind} is not judged here")

    def _lags(self, now: float) -> Lags:
        """Of the groups that some rule is about, the ones that have vanished included for a while."""
        wanted = [
            rule.condition.groups for rule in self._declaration.rules if isinstance(rule.condition, OfGroups)
        ]
        there = {
            each.group
            for each in groups.listings(self._session, types=groups.ALL_TYPES)
            if not each.group.startswith(lag.OWN_GROUPS)
            and any(patterns.matches(each.group) for patterns in wanted)
        }
        for group in self._groups - there:
            self._vanished.setdefault(group, now)
        for group, since in list(self._vanished.items()):
            if group in there or now - since > _FORGET_AFTER:
                del self._vanished[group]
                if group not in there:
                    self._meter.forget(group)
        self._groups = there | self._vanished.keys()
        measured: list[GroupLag] = []
        unmeasured: dict[str, str] = {}
        for group in sorted(self._groups):
            if len(unmeasured) >= _MOST_REFUSALS:
                unmeasured[group] = "others could not be measured, either"
                continue
            try:
                measured.append(self._meter.measure(group))
            except ClientError as error:
                unmeasured[group] = str(error).rstrip(".")
        return Lags(measured, unmeasured)

    def _read_silences(self) -> tuple[Silence, ...] | None:
        try:
            end = self._store.silences_end(self._admin)
            if end != self._silences[0]:
                found = tuple(self._store.silences(self._admin)) if end is not None else ()
                self._silences = (end, found)
        except ClientError as error:
            log.warning("the silences could not be read: %s", error)
            return None
        return self._silences[1]


class Observing:
    """An observer in its own thread; looks come out of ``looks``."""

    def __init__(self, declaration: Declaration, config: Mapping[str, object]) -> None:
        self._declaration = declaration
        self._observer = Observer(declaration, config)
        self._stop = threading.Event()
        self.looks: SimpleQueue[Look] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="alerts observer", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            self.looks.put(self._observer.look())
            self._stop.wait(max(0.0, self._declaration.interval - (time.monotonic() - begun)))
        self._observer.close()

    def close(self, patience: float = 5.0) -> None:
        self._stop.set()
        self._thread.join(patience)


def _tls(connection: Mapping[str, object]) -> Tls | None:
    given = {name: str(value) for name, value in connection.items()}
    try:
        return KafkaSettings.of(given, "watching a cluster").tls
    except SettingsError as error:
        raise ConfigError(str(error)) from None

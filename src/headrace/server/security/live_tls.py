"""The TLS of a broker's listeners while it runs: read again when a file or a setting changes, without touching open connections.

What cannot be used, such as a key whose certificate is still being written, or may not follow what is in use, leaves everything as it
is and is tried again. Certificates that end soon, or have ended, are named in the log once a day.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterable
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta

from headrace.clock import Clock
from headrace.link.certificates import MalformedCertificate
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.config.listeners import Listener
from headrace.server.security.server_tls import ListenerTls, check_names, listener_tls

log = logging.getLogger("headrace")

LOOK_SECONDS = 5.0
"""How often the files are looked at."""
WARN_BEFORE = timedelta(days=14)
REMIND_AFTER = timedelta(days=1)

Stamps = tuple[tuple[int, int, int] | None, ...]


class TlsOfListener:
    """What new connections of one listener get: `current`, replaced as a whole."""

    def __init__(self, config: BrokerConfig, listener: Listener) -> None:
        self.listener = listener
        self._stamps = _stamps(config, listener)
        self.current: ListenerTls = listener_tls(config, listener)
        self._complaint = ""
        self._reminded: datetime | None = None

    def refresh(self, config: BrokerConfig, *, anyway: bool) -> None:
        """Read everything again if a file is not what it was, or `anyway`. In a thread."""
        stamps = _stamps(config, self.listener)
        if stamps == self._stamps and not anyway and not self._complaint:
            return
        try:
            self.current = self.tried(config)
        except ConfigError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                log.warning("%s It keeps the certificate it has and tries again.", error)
            return
        self._stamps, self._complaint, self._reminded = stamps, "", None
        log.info(
            "Listener %s uses its new certificate, valid until %s, for new connections.",
            self.listener.name,
            f"{self.current.valid_until:%Y-%m-%d %H:%M} UTC",
        )

    def tried(self, config: BrokerConfig) -> ListenerTls:
        """What would take the place of `current`. ConfigError when it cannot be used, or may not follow it. In a thread."""
        try:
            new = listener_tls(config, self.listener)
            check_names(self.current, new, config.for_listener(self.listener.name), self.listener)
        except MalformedCertificate as error:
            raise ConfigError(
                f"Listener {self.listener}: the new certificate cannot be read: {error}."
            ) from None
        return new

    def warn_of_end(self, now: datetime) -> None:
        tls = self.current
        due = self._reminded is None or now - self._reminded >= REMIND_AFTER
        if not due or tls.valid_from <= now < tls.valid_until - WARN_BEFORE:
            return
        self._reminded = now
        if now < tls.valid_from:
            what = f"is not valid before {tls.valid_from:%Y-%m-%d %H:%M} UTC: check this machine's clock, or issue another"
        elif now >= tls.valid_until:
            what = f"expired on {tls.valid_until:%Y-%m-%d %H:%M} UTC and clients refuse it: put a new one in its place"
        else:
            what = f"expires on {tls.valid_until:%Y-%m-%d %H:%M} UTC: put a new one in its place in time"
        log.warning(
            "The certificate of listener %s %s; it is read again without a restart.", self.listener.name, what
        )


class LiveTls:
    """All encrypted listeners of a broker."""

    def __init__(self, config: BrokerConfig) -> None:
        """Reads files. ConfigError, with the remedy, when a listener must not be opened like this."""
        self._config = config
        self._refreshing = threading.Lock()
        self._listeners = {each.name: TlsOfListener(config, each) for each in _encrypted(config)}

    def of(self, listener: str) -> TlsOfListener | None:
        return self._listeners.get(listener)

    def check(self, config: BrokerConfig) -> None:
        """ConfigError when a listener could not be opened with these settings. In a thread."""
        for each in self._listeners.values():
            each.tried(config)

    def configure(self, config: BrokerConfig, disk: Executor) -> None:
        """Settings changed while the broker runs."""
        changed, self._config = _settings_of_tls(self._config) != _settings_of_tls(config), config
        if changed and self._listeners:
            asyncio.get_running_loop().run_in_executor(disk, self._refresh, True)

    async def watch(self, clock: Clock, disk: Executor) -> None:
        """Look at the files and the dates until cancelled."""
        loop = asyncio.get_running_loop()
        while self._listeners:
            now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
            for each in self._listeners.values():
                each.warn_of_end(now)
            await clock.sleep(LOOK_SECONDS)
            await loop.run_in_executor(disk, self._refresh, False)

    def _refresh(self, anyway: bool) -> None:
        """One thread at a time, each by the newest settings: the last to finish must not bring back older ones."""
        with self._refreshing:
            for each in self._listeners.values():
                each.refresh(self._config, anyway=anyway)


def _encrypted(config: BrokerConfig) -> Iterable[Listener]:
    return (each for each in config.listeners if each.encrypted)


def _settings_of_tls(config: BrokerConfig) -> list[tuple[str, str]]:
    layers = (config.static, config.dynamic_default, config.dynamic_broker)
    return [(name, text) for layer in layers for name, text in layer.items() if "ssl." in name]


def _stamps(config: BrokerConfig, listener: Listener) -> Stamps:
    """What tells a file from the one that was there before: also where a link points elsewhere now."""
    own = config.for_listener(listener.name)
    found: list[tuple[int, int, int] | None] = []
    for location in (own.string("ssl.keystore.location"), own.string("ssl.truststore.location")):
        try:
            status = os.stat(location) if location else None
        except OSError:
            status = None
        found.append((status.st_ino, status.st_mtime_ns, status.st_size) if status is not None else None)
    return tuple(found)

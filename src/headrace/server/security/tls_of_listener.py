"""The TLS of one listener while it runs: `LiveTls` says when to look at its files again."""

from __future__ import annotations

import logging
import os
from datetime import datetime, timedelta

from headrace.link.certificates import MalformedCertificate
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.config.listeners import Listener
from headrace.server.security.server_tls import ListenerTls, check_names, listener_tls

log = logging.getLogger("headrace")

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

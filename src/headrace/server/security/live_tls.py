"""The TLS of a broker's listeners while it runs: read again when a file or a setting changes, without touching open connections.

What cannot be used, such as a key whose certificate is still being written, or may not follow what is in use, leaves everything as it
is and is tried again. Certificates that end soon, or have ended, are named in the log once a day.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.clock import Clock
from headrace.server.config.broker import BrokerConfig

if TYPE_CHECKING:
    from headrace.server.security.tls_of_listener import TlsOfListener

LOOK_SECONDS = 5.0
"""How often the files are looked at."""


class LiveTls:
    """All encrypted listeners of a broker."""

    def __init__(self, config: BrokerConfig) -> None:
        """Reads files. ConfigError, with the remedy, when a listener must not be opened like this."""
        self._config = config
        self._refreshing = threading.Lock()
        self._listeners = _listeners_with_tls(config)

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


def _listeners_with_tls(config: BrokerConfig) -> dict[str, TlsOfListener]:
    encrypted = [each for each in config.listeners if each.encrypted]
    if not encrypted:
        return {}
    # Imported here: plain listeners have no need of it.
    from headrace.server.security.tls_of_listener import TlsOfListener

    return {each.name: TlsOfListener(config, each) for each in encrypted}


def _settings_of_tls(config: BrokerConfig) -> list[tuple[str, str]]:
    layers = (config.static, config.dynamic_default, config.dynamic_broker)
    return [(name, text) for layer in layers for name, text in layer.items() if "ssl." in name]

"""The TLS of a broker's listeners while it runs."""

from __future__ import annotations

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.listeners import Listener
from headrace.server.security.server_tls import ListenerTls, listener_tls


class LiveTls:
    """What new connections of one listener get."""

    def __init__(self, config: BrokerConfig, listener: Listener) -> None:
        self.current: ListenerTls = listener_tls(config, listener)

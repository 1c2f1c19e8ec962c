"""A port of a program's own at which Prometheus reads what its collectors say at that moment."""

from __future__ import annotations

from typing import Any

from headrace.client.errors import ConfigError, require
from headrace.link.addresses import split_address


def metrics_address(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; without a host, all addresses."""
    try:
        host, port = split_address(address)
    except ValueError:
        raise ConfigError(
            f"{address!r} is no address for metrics: write HOST:PORT, as in 127.0.0.1:9465"
        ) from None
    return host or "0.0.0.0", port


class MetricsPort:
    """``address`` is HOST:PORT; port 0 takes a free one. Needs headrace[metrics]."""

    def __init__(self, address: str) -> None:
        prometheus = require("prometheus_client", "metrics", "a metrics port")
        self._host, self._port = metrics_address(address)
        self._start = prometheus.start_http_server
        self.registry = prometheus.CollectorRegistry()
        self.port: int | None = None
        """The port actually bound."""
        self._server: Any = None

    def open(self) -> None:
        try:
            self._server, _ = self._start(self._port, self._host, self.registry)
        except OSError as error:
            raise ConfigError(
                f"metrics cannot be served at {self._host}:{self._port} ({error.strerror or error}): choose another port"
            ) from None
        self.port = int(self._server.server_port)

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

"""Which security protocol a broker's listener speaks: found out when a client had no answer from it, to say what to set."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from headrace.link.addresses import split_address
from headrace.link.blocking import Connection
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import KafkaSettings
from headrace.wire.errors import KafkaError
from headrace.wire.messages.metadata import MetadataRequest

_PATIENCE = 2.0

CERTIFICATE_WANTED = "alert certificate required"
"""What OpenSSL says when a broker ends a connection for want of a client certificate (TLS 1.3)."""


def spoken_at(servers: str) -> tuple[str, str] | None:
    """The first address of HOST:PORT,… where something listens, and the value of security.protocol that fits it; None where nothing
    listens, or no broker."""
    for host, port in _listening(servers):
        for protocol in ("PLAINTEXT", "SSL"):
            try:
                connection = Connection(host, port, _settings(protocol))
            except (KafkaError, BrokerUnavailable) as error:
                if CERTIFICATE_WANTED in str(error):
                    return f"{host}:{port}", protocol
                continue
            with connection:
                return f"{host}:{port}", protocol if _serves(connection) else f"SASL_{protocol}"
        return None
    return None


def _listening(servers: str) -> Iterator[tuple[str, int]]:
    for server in servers.split(","):
        try:
            host, port = split_address(server)
            socket.create_connection((host, port), timeout=_PATIENCE).close()
        except (OSError, ValueError):
            continue
        yield host, port


def _settings(protocol: str) -> KafkaSettings:
    """Without a login, and trusting everybody: nothing is sent but the question who is there."""
    return KafkaSettings.of(
        {
            "bootstrap.servers": "unused:1",
            "security.protocol": protocol,
            "enable.ssl.certificate.verification": "false",
            "request.timeout.ms": str(int(_PATIENCE * 1000)),
        },
        "a probe",
    )


def _serves(connection: Connection) -> bool:
    """Whether a client is served that has not logged in; one that asks for a login ends the connection."""
    try:
        connection.call(MetadataRequest([]))
    except (KafkaError, BrokerUnavailable):
        return False
    return True

"""How a broker gets into ZooKeeper: TLS, a login, and the ACL that keeps others away from the cluster's nodes.

The TLS settings are Kafka's, `zookeeper.ssl.*`. The login takes the place of the `Client` section of Kafka's JAAS file.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.link.errors import SettingsError
from headrace.link.settings import KafkaSettings
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError

_PREFIX = "zookeeper."

DIGEST = "DIGEST"
"""ZooKeeper's own scheme; the other is the SASL mechanism DIGEST-MD5."""


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    tls: ssl.SSLContext | None = None
    scheme: str = DIGEST
    user: str | None = None
    password: str = field(default="", repr=False)
    owns_nodes: bool = False
    """Whether the cluster's nodes are for this login alone (zookeeper.set.acl)."""

    @classmethod
    def of(cls, config: BrokerConfig) -> ZooKeeperAccess:
        """ConfigError for settings that contradict each other, or files that cannot be used."""
        user = config.string("headrace.zookeeper.user")
        owns_nodes = config.boolean("zookeeper.set.acl")
        tls = config.boolean("zookeeper.ssl.client.enable")
        shows_certificate = tls and config.string("zookeeper.ssl.keystore.location") is not None
        if owns_nodes and user is None and not shows_certificate:
            raise ConfigError(
                "zookeeper.set.acl=true needs a login to own the nodes: set headrace.zookeeper.user and "
                "headrace.zookeeper.password, or a client certificate with zookeeper.ssl.client.enable=true and "
                "zookeeper.ssl.keystore.location."
            )
        return cls(
            _context(config) if tls else None,
            config.string("headrace.zookeeper.login.scheme") or DIGEST,
            user,
            config.string("headrace.zookeeper.password") or "",
            owns_nodes,
        )

    def client_options(self) -> Mapping[str, Any]:
        """For kazoo's client. TLS is not among them: the client's threads open its connections."""
        options: dict[str, Any] = {}
        if self.user is not None and self.scheme == DIGEST:
            options["auth_data"] = [("digest", f"{self.user}:{self.password}")]
        elif self.user is not None:
            options["sasl_options"] = {
                "mechanism": self.scheme,
                "username": self.user,
                "password": self.password,
            }
        if self.owns_nodes:
            from kazoo.security import CREATOR_ALL_ACL

            options["default_acl"] = CREATOR_ALL_ACL
        return options


OPEN = ZooKeeperAccess()
"""Without TLS and login."""


def _context(config: BrokerConfig) -> ssl.SSLContext:
    settings = {
        "bootstrap.servers": "zookeeper:2181",
        "security.protocol": "SSL",
        "ssl.keystore.location": config.string("zookeeper.ssl.keystore.location"),
        "ssl.keystore.password": config.string("zookeeper.ssl.keystore.password"),
        "ssl.keystore.type": config.string("zookeeper.ssl.keystore.type"),
        "ssl.truststore.location": config.string("zookeeper.ssl.truststore.location"),
        "ssl.truststore.password": config.string("zookeeper.ssl.truststore.password"),
        "ssl.truststore.type": config.string("zookeeper.ssl.truststore.type"),
        "ssl.endpoint.identification.algorithm": config.string(
            "zookeeper.ssl.endpoint.identification.algorithm"
        ),
    }
    given = {_PREFIX + name: value for name, value in settings.items() if value is not None}
    try:
        tls = KafkaSettings.of(given, "ZooKeeper", prefix=_PREFIX).tls
        assert tls is not None
        return tls.context()
    except SettingsError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"The TLS files of zookeeper.ssl.* cannot be used: {error}.") from None

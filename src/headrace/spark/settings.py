"""The `kafka.*` options of a Spark job: where the brokers are and how to speak to them.

Names are those of Kafka's Java client, because jobs bring them along; the few that librdkafka names otherwise
(`sasl.username`, `ssl.ca.location`, …) are understood too. What cannot be honoured is refused by name.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.java_names import jaas_options

PREFIX = "kafka."

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SettingsError(ValueError):
    """An option that cannot be used as it stands; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Login:
    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """Where the certificates are; files or PEM text, as the Java client takes them."""

    authorities: str | None = None
    authorities_text: str | None = None
    certificate: str | None = None
    key: str | None = None
    pair_text: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authorities, cadata=self.authorities_text)
        context.check_hostname = self.check_hostname
        if self.pair_text is not None:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
                pem.write(self.pair_text)
                pem.flush()
                context.load_cert_chain(pem.name, password=self.key_password)
        elif self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key, password=self.key_password)
        return context


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """What a connection needs; hashable, so that connections can be kept by it."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str = "headrace-spark"
    tls: Tls | None = None
    login: Login | None = None
    request_timeout: float = 30.0
    api_timeout: float = 60.0
    """How long one piece of work is tried again while brokers come and go (default.api.timeout.ms)."""
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    rack: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str], purpose: str = "configuring Kafka consumer") -> KafkaSettings:
        """From a job's options, names in any case; `purpose` ends the sentence when the brokers are not named."""
        found = {
            name.lower().removeprefix(PREFIX): value.strip()
            for name, value in options.items()
            if name.lower().startswith(PREFIX)
        }
        protocol = found.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in _PROTOCOLS:
            raise SettingsError(
                f"kafka.security.protocol is {protocol!r}; it is one of {', '.join(_PROTOCOLS)}."
            )
        return cls(
            bootstrap=_bootstrap(found.get("bootstrap.servers", ""), purpose),
            client_id=found.get("client.id", "headrace-spark"),
            tls=_tls(found) if protocol.endswith("SSL") else None,
            login=_login(found) if protocol.startswith("SASL") else None,
            request_timeout=_milliseconds(found, "request.timeout.ms", 30_000),
            api_timeout=_milliseconds(found, "default.api.timeout.ms", 60_000),
            retry_backoff=_milliseconds(found, "retry.backoff.ms", 100),
            retry_backoff_max=_milliseconds(found, "retry.backoff.max.ms", 1_000),
            rack=found.get("client.rack", ""),
        )


def _bootstrap(text: str, purpose: str) -> tuple[tuple[str, int], ...]:
    if not text:
        raise SettingsError(f"Option 'kafka.bootstrap.servers' must be specified for {purpose}")
    servers = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = entry.rpartition("://")[2].rpartition(
            ":"
        )  # the Java client passes a protocol over, too
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise SettingsError(f"kafka.bootstrap.servers holds {entry!r}; write host:port,host:port,…")
        servers.append((host.strip("[]"), int(port)))
    return tuple(servers)


def _milliseconds(found: Mapping[str, str], name: str, default: int) -> float:
    text = found.get(name, str(default))
    if not text.isdigit():
        raise SettingsError(f"kafka.{name} is {text!r}; it is a number of milliseconds.")
    return int(text) / 1000


def _login(found: Mapping[str, str]) -> Login:
    mechanism = found.get("sasl.mechanism", found.get("sasl.mechanisms", "GSSAPI")).upper()
    if mechanism not in _MECHANISMS:
        raise SettingsError(
            f"kafka.sasl.mechanism is {mechanism}; this source speaks {', '.join(_MECHANISMS)}: set one of them."
        )
    jaas = jaas_options(found.get("sasl.jaas.config", ""))
    username = found.get("sasl.username", jaas.get("username"))
    password = found.get("sasl.password", jaas.get("password"))
    if username is None or password is None:
        raise SettingsError(
            "SASL needs a user: set kafka.sasl.jaas.config as for the Java client "
            '(… LoginModule required username="…" password="…";), or kafka.sasl.username and kafka.sasl.password.'
        )
    return Login(mechanism, username, password)


def _tls(found: Mapping[str, str]) -> Tls:
    for store in ("truststore", "keystore"):
        kind = found.get(f"ssl.{store}.type", "").upper()
        location = found.get(f"ssl.{store}.location", "")
        if kind in ("JKS", "PKCS12") or (not kind and location.lower().endswith((".jks", ".p12", ".pfx"))):
            raise SettingsError(
                f"kafka.ssl.{store}.location names a {kind or 'Java'} store; give PEM files instead "
                f"(kafka.ssl.{store}.type=PEM; `keytool -exportcert -rfc` or `openssl pkcs12` makes them)."
            )
    chain, key = found.get("ssl.keystore.certificate.chain"), found.get("ssl.keystore.key")
    if (chain is None) != (key is None):
        raise SettingsError(
            "kafka.ssl.keystore.certificate.chain and kafka.ssl.keystore.key belong together; one is missing."
        )
    keystore = found.get("ssl.keystore.location")
    return Tls(
        authorities=found.get("ssl.truststore.location", found.get("ssl.ca.location")),
        authorities_text=found.get("ssl.truststore.certificates"),
        certificate=found.get("ssl.certificate.location", keystore),
        key=found.get("ssl.key.location"),
        pair_text=None if chain is None or key is None else f"{key}\n{chain}\n",
        key_password=found.get("ssl.key.password"),
        check_hostname=found.get("ssl.endpoint.identification.algorithm", "https").lower()
        not in ("", "none"),
    )

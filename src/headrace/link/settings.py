"""What a connection of our own needs to know: where the brokers are and how to speak to them.

Settings come under the Java client's names or librdkafka's (`link/translation.py`). What cannot be honoured is refused
by name.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.link.addresses import split_address
from headrace.link.errors import SettingsError as SettingsError
from headrace.link.logins import read_login
from headrace.link.tls import Tls
from headrace.link.tls_versions import TlsVersions, TlsVersionsError
from headrace.link.translation import Translation, translate
from headrace.wire.sasl.logins import AnyLogin

log = logging.getLogger(__name__)

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_OWN = frozenset(
    {
        "default.api.timeout.ms",
        "partition.assignment.strategy",
        "partitioner.class",
        "ssl.enabled.protocols",
        "ssl.protocol",
    }
)
"""Settings that are read here, or that a connection does not need."""
_VERBATIM = ("password", "username", "jaas.config", ".key", ".pem", ".certificates", ".chain", "secret")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """What a connection needs; hashable, so that connections can be kept by it."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str = "headrace"
    tls: Tls | None = None
    login: AnyLogin | None = None
    request_timeout: float = 30.0
    api_timeout: float = 60.0
    """How long one operation is retried while brokers come and go (default.api.timeout.ms)."""
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    rack: str = ""
    prefix: str = ""
    """What the user writes before the names of these settings, for messages."""

    @classmethod
    def of(
        cls,
        options: Mapping[str, str],
        purpose: str,
        prefix: str = "",
        client_id: str = "headrace",
    ) -> KafkaSettings:
        """From settings whose names begin with `prefix`, in any case; `purpose` ends the sentence when the brokers
        are not named."""
        given = {
            name.lower().removeprefix(prefix): value
            for name, value in options.items()
            if name.lower().startswith(prefix)
        }
        translation = translate_for_protocol(given, _OWN, prefix)
        for note in translation.notes:
            log.warning("headrace: %s", note)
        reader = _Reader({"client.id": client_id, **translation.settings}, prefix)
        return reader.read(reader.bootstrap(purpose))

    @classmethod
    def between_brokers(cls, options: Mapping[str, str], client_id: str) -> KafkaSettings:
        """For connections whose addresses the cluster's metadata gives; the options say how to secure them."""
        settings = translate_for_protocol(options, _OWN, "").settings
        return _Reader({"client.id": client_id, **settings}, "").read(())


def translate_for_protocol(given: Mapping[str, str], own: Collection[str], prefix: str) -> Translation[str]:
    """`translate`, except that a setting of TLS or SASL that the protocol does not use is never a reason to refuse: jobs carry
    them along. Blanks around values go, unless they may be part of a name or a secret."""
    tidy = {name: value if name.endswith(_VERBATIM) else value.strip() for name, value in given.items()}
    try:
        return translate(tidy, own=own, prefix=prefix)
    except SettingsError:
        protocol = tidy.get("security.protocol", "PLAINTEXT").upper()
        unused = ("ssl.",) * (not protocol.endswith("SSL")) + ("sasl.",) * (not protocol.startswith("SASL"))
        used = {name: value for name, value in tidy.items() if not name.startswith(unused)}
        if len(used) == len(tidy):
            raise
        return translate(used, own=own, prefix=prefix)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Settings by librdkafka's names, and the prefix under which the user knows them."""

    found: Mapping[str, str]
    prefix: str

    def read(self, bootstrap: tuple[tuple[str, int], ...]) -> KafkaSettings:
        found = self.found
        protocol = found.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in _PROTOCOLS:
            raise SettingsError(
                f"{self.prefix}security.protocol is {protocol!r}; it is one of {', '.join(_PROTOCOLS)}."
            )
        return KafkaSettings(
            bootstrap=bootstrap,
            client_id=found["client.id"],
            tls=self._tls() if protocol.endswith("SSL") else None,
            login=read_login(found, self.prefix) if protocol.startswith("SASL") else None,
            request_timeout=self._seconds("request.timeout.ms", 30_000),
            api_timeout=self._seconds("default.api.timeout.ms", 60_000),
            retry_backoff=self._seconds("retry.backoff.ms", 100),
            retry_backoff_max=self._seconds("retry.backoff.max.ms", 1_000),
            rack=found.get("client.rack", ""),
            prefix=self.prefix,
        )

    def bootstrap(self, purpose: str) -> tuple[tuple[str, int], ...]:
        text = self.found.get("bootstrap.servers", "")
        if not text:
            raise SettingsError(f"Option '{self.prefix}bootstrap.servers' must be specified for {purpose}")
        servers = []
        for entry in filter(None, (part.strip() for part in text.split(","))):
            try:
                # The Java client ignores a protocol, too.
                host, port = split_address(entry.rpartition("://")[2])
            except ValueError:
                host, port = "", 0
            if not host or not port:
                raise SettingsError(
                    f"{self.prefix}bootstrap.servers holds {entry!r}; write host:port,host:port,…"
                )
            servers.append((host, port))
        return tuple(servers)

    def _seconds(self, name: str, default: int) -> float:
        text = self.found.get(name, str(default))
        if not text.isdigit():
            raise SettingsError(f"{self.prefix}{name} is {text!r}; it is a number of milliseconds.")
        return int(text) / 1000

    def _tls(self) -> Tls:
        found, prefix = self.found, self.prefix
        chain, key = found.get("ssl.certificate.pem"), found.get("ssl.key.pem")
        if (chain is None) != (key is None):
            raise SettingsError(
                f"{prefix}ssl.certificate.pem and {prefix}ssl.key.pem belong together: give certificate and key both "
                "as text or both as files."
            )
        return Tls(
            authorities=found.get("ssl.ca.location"),
            authorities_text=found.get("ssl.ca.pem"),
            certificate=found.get("ssl.certificate.location"),
            key=found.get("ssl.key.location"),
            pair_text=None if chain is None or key is None else f"{key}\n{chain}\n",
            key_password=found.get("ssl.key.password"),
            store=found.get("ssl.keystore.location"),
            store_password=found.get("ssl.keystore.password"),
            versions=self._versions(),
            prefix=prefix,
            check_hostname=found.get("ssl.endpoint.identification.algorithm", "https").lower() != "none",
            check_certificate=found.get("enable.ssl.certificate.verification", "true").lower() != "false",
        )

    def _versions(self) -> TlsVersions:
        found = self.found

        def listed(name: str) -> list[str]:
            return [part.strip() for part in found.get(name, "").replace(":", ",").split(",") if part.strip()]

        try:
            return TlsVersions.of(
                listed("ssl.enabled.protocols") or ("TLSv1.2", "TLSv1.3"),
                found.get("ssl.protocol", "TLSv1.3"),
                listed("ssl.cipher.suites"),
                self.prefix,
            )
        except TlsVersionsError as error:
            raise SettingsError(str(error)) from None

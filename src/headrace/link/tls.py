"""TLS as a client uses it: which authorities it trusts, and the certificate it shows."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.link.key_material import (
    KeyMaterialError,
    KeyPair,
    pem_authorities,
    pem_pair,
    read_key_store,
    read_trust_store,
    trust,
)
from headrace.link.tls_versions import TlsVersions
from headrace.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Tls:
    """Where the certificates are; files or PEM text, as the Java client takes them."""

    authorities: str | None = None
    authorities_password: str | None = field(default=None, repr=False)
    authorities_text: str | None = None
    certificate: str | None = None
    key: str | None = None
    pair_text: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    store: str | None = None
    """A file with both certificate and key, PEM or PKCS12."""
    store_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    check_certificate: bool = True
    versions: TlsVersions = field(default_factory=TlsVersions)
    prefix: str = ""
    """What the user writes before the names of settings, for messages."""

    def context(self) -> ssl.SSLContext:
        """KeyMaterialError for a file that is not there or holds something else."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.versions.apply_to(context)
        context.check_hostname = self.check_hostname and self.check_certificate
        if not self.check_certificate:
            context.verify_mode = ssl.CERT_NONE
        self._trust(context)
        pair = self._pair()
        if pair is not None:
            pair.load_into(context)
        return context

    def _trust(self, context: ssl.SSLContext) -> None:
        if self.authorities_text is not None:
            source = f"{self.prefix}ssl.truststore.certificates"
            trust(context, pem_authorities(self.authorities_text.encode(), source), source)
        elif self.authorities is None:
            context.load_default_certs()
        elif Path(self.authorities).is_dir():
            context.load_verify_locations(capath=self.authorities)
        else:
            found = read_trust_store(self.authorities, self.authorities_password, self.prefix)
            trust(context, found, f"{self.prefix}ssl.truststore.location={self.authorities}")

    def _pair(self) -> KeyPair | None:
        prefix = self.prefix
        if self.pair_text is not None:
            text = self.pair_text.encode()
            return pem_pair(text, text, self.key_password, f"{prefix}ssl.keystore.key", prefix)
        if self.certificate is not None:
            source = f"{self.prefix}ssl.certificate.location={self.certificate}"
            chain = _read(self.certificate, source)
            key = chain if self.key is None else _read(self.key, f"{self.prefix}ssl.key.location={self.key}")
            return pem_pair(key, chain, self.key_password, source, prefix)
        if self.store is not None:
            return read_key_store(self.store, self.store_password, self.key_password, prefix)
        return None


def _read(location: str, source: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise KeyMaterialError(f"{source}: the file cannot be read: {error.strerror}.") from None


_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")


def unreadable_file(settings: Mapping[str, object]) -> str | None:
    """Which file of a client's settings, by librdkafka's names, cannot be read and why; None when all can."""
    for name in _FILES:
        location = settings.get(name)
        if not isinstance(location, str) or os.path.isdir(location):
            continue
        try:
            with open(location, "rb"):
                pass
        except OSError as error:
            return f"{name}={location}: the file cannot be read: {error.strerror}."
    return None


_Stamp = tuple[int, int, int] | None
_made: dict[Tls, tuple[tuple[_Stamp, ...], ssl.SSLContext]] = {}
MOST_KEPT = 16


def context_of(tls: Tls) -> ssl.SSLContext:
    """The context, made once and again when a file has changed; KafkaError with the sentence for the user.

    While a new file cannot be used, as when only one of two has been replaced, the old context stays.
    """
    stamps = tuple(map(_stamp, (tls.authorities, tls.certificate, tls.key, tls.store)))
    known = _made.get(tls)
    if known is not None and known[0] == stamps:
        return known[1]
    try:
        context = tls.context()
    except (KeyMaterialError, OSError) as error:
        if known is not None:
            return known[1]
        raise KafkaError(
            ErrorCode.SASL_AUTHENTICATION_FAILED, f"The TLS files cannot be used: {error}"
        ) from None
    while len(_made) >= MOST_KEPT:
        _made.pop(next(iter(_made), tls), None)
    _made[tls] = stamps, context
    return context


def _stamp(location: str | None) -> _Stamp:
    """What tells a file from the one that was there before."""
    try:
        status = os.stat(location) if location is not None else None
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size) if status is not None else None


def not_trusted(address: str, error: ssl.SSLCertVerificationError, prefix: str) -> KafkaError:
    """The broker's certificate was refused, as a sentence with the remedy."""
    if error.verify_code in (62, 64):  # The host name, or the address, is not in it.
        remedy = "connect by a name that the certificate has, or issue it with this one as a subject alternative name"
    elif error.verify_code in (9, 10):
        remedy = "renew it, or check the clocks of both machines"
    else:
        remedy = f"set {prefix}ssl.truststore.location to the PEM file of its authority"
    return KafkaError(
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        f"The certificate of the broker at {address} is not trusted ({error.verify_message}); {remedy}.",
    )

"""Which TLS versions and cipher suites a connection may use, from Kafka's settings with Java's names.

Python's ssl cannot choose among the suites of TLS 1.3, so a suite that was not allowed is noticed when the handshake is done. OpenSSL
takes the first of its own order that both sides have; as long as that first one is allowed, no peer that has an allowed one is refused.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""In the order of OpenSSL's choice."""
_NO_SUITE = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""Java lists it among its suites; it is a signal."""


def _openssl_name(key_exchange: str, cipher: str) -> str:
    """OpenSSL's name for `TLS_<key exchange>_WITH_<cipher>`."""
    cipher = cipher.replace("AES_256_", "AES256_").replace("AES_128_", "AES128_").replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return (f"{key_exchange}_{cipher}" if key_exchange != "RSA" else cipher).replace("_", "-")


_AEAD = ("AES_256_GCM_SHA384", "AES_128_GCM_SHA256")
_CBC = ("AES_256_CBC_SHA", "AES_128_CBC_SHA", "AES_128_CBC_SHA256")
_TLS_1_2 = {
    f"TLS_{exchange}_WITH_{cipher}": _openssl_name(exchange, cipher)
    for exchange, ciphers in {
        "ECDHE_ECDSA": (*_AEAD, "CHACHA20_POLY1305_SHA256", *_CBC, "AES_256_CBC_SHA384"),
        "ECDHE_RSA": (*_AEAD, "CHACHA20_POLY1305_SHA256", *_CBC, "AES_256_CBC_SHA384"),
        "DHE_RSA": (*_AEAD, "CHACHA20_POLY1305_SHA256", *_CBC, "AES_256_CBC_SHA256"),
        "RSA": (*_AEAD, *_CBC, "AES_256_CBC_SHA256"),
    }.items()
    for cipher in ciphers
}
"""Java's names and OpenSSL's."""


class TlsVersionsError(ValueError):
    """The sentence for the user; it begins with the setting's name."""


@dataclass(frozen=True, slots=True)
class TlsVersions:
    lowest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: str = ""
    """For TLS 1.2, as OpenSSL takes them; empty for its own choice."""
    suites: tuple[str, ...] = _TLS_1_3
    """Allowed with TLS 1.3."""

    @classmethod
    def of(
        cls,
        enabled: Sequence[str] = ("TLSv1.2", "TLSv1.3"),
        protocol: str = "TLSv1.3",
        suites: Sequence[str] = (),
        prefix: str = "",
    ) -> TlsVersions:
        """From ssl.enabled.protocols, ssl.protocol and ssl.cipher.suites."""
        versions = _versions(enabled, protocol, prefix)
        named = [suite for suite in map(str.strip, suites) if suite and suite != _NO_SUITE]
        older = [_TLS_1_2.get(suite, suite) for suite in named if suite not in _TLS_1_3]
        for suite in older:
            if suite not in _TLS_1_2.values():
                raise TlsVersionsError(
                    f"{prefix}ssl.cipher.suites: there is no cipher suite {suite} here; use names such as "
                    "TLS_AES_256_GCM_SHA384 (TLS 1.3) and TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 (TLS 1.2)."
                )
        newer = tuple(suite for suite in _TLS_1_3 if suite in named)
        if newer and _TLS_1_3[0] not in newer and ssl.TLSVersion.TLSv1_3 in versions:
            raise TlsVersionsError(
                f"{prefix}ssl.cipher.suites: of TLS 1.3's suites {', '.join(newer)} cannot be had without {_TLS_1_3[0]}, "
                f"which OpenSSL prefers; add it, or set {prefix}ssl.enabled.protocols=TLSv1.2."
            )
        if named:
            # A version without a suite is of no use.
            versions = [
                version for version in versions if (newer if version is ssl.TLSVersion.TLSv1_3 else older)
            ]
            if not versions:
                raise TlsVersionsError(
                    f"{prefix}ssl.cipher.suites has no suite for {', '.join(enabled)}, the versions in "
                    f"{prefix}ssl.enabled.protocols."
                )
        return cls(versions[0], versions[-1], ":".join(older), newer or _TLS_1_3)

    def apply_to(self, context: ssl.SSLContext) -> None:
        context.minimum_version, context.maximum_version = self.lowest, self.highest
        if self.ciphers:
            context.set_ciphers(self.ciphers)

    def complaint(self, connection: ssl.SSLObject | ssl.SSLSocket) -> str | None:
        """What is wrong with what was agreed on, if anything."""
        agreed = connection.cipher()
        if agreed is None or connection.version() != "TLSv1.3" or agreed[0] in self.suites:
            return None
        return f"the cipher suite {agreed[0]} was agreed on, which is not in ssl.cipher.suites"


def _versions(enabled: Sequence[str], protocol: str, prefix: str) -> list[ssl.TLSVersion]:
    if protocol not in ("TLS", *_VERSIONS):
        raise TlsVersionsError(f"{prefix}ssl.protocol is {protocol}; it is TLSv1.3, TLSv1.2 or TLS.")
    for name in enabled:
        if name not in _VERSIONS:
            raise TlsVersionsError(
                f"{prefix}ssl.enabled.protocols names {name}; TLSv1.2 and TLSv1.3 are offered, and older ones are broken."
            )
    highest = _VERSIONS.get(protocol, ssl.TLSVersion.TLSv1_3)
    versions = sorted({_VERSIONS[name] for name in enabled} & {v for v in _VERSIONS.values() if v <= highest})
    if not versions:
        raise TlsVersionsError(
            f"{prefix}ssl.enabled.protocols={','.join(enabled)} and {prefix}ssl.protocol={protocol} leave no version."
        )
    return versions

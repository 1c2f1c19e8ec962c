"""Why a TLS handshake failed, as one sentence with the cause and what to do about it."""

from __future__ import annotations

import ssl
from datetime import datetime
from typing import TYPE_CHECKING

from headrace.link.certificates import validity_of
from headrace.server.config.listeners import Listener

if TYPE_CHECKING:
    from headrace.server.security.server_tls import ListenerTls

_HANDSHAKE_RECORD = 0x16
_EXPIRED = 10

_TRUST = "sign it by an authority in ssl.truststore.location, or add its authority there"
_VERIFY_CODES = {
    9: "is not valid yet: check the clocks of both machines, then the certificate's dates",
    _EXPIRED: "has expired: renew it, or check the clocks of both machines",
    18: f"is self-signed and not trusted: {_TRUST}",
    19: f"ends at a self-signed authority that is not trusted: {_TRUST}",
    20: f"is signed by an authority that is not trusted: {_TRUST}",
    21: f"is signed by an authority that is not trusted: {_TRUST}",
    23: "has been revoked",
    26: "is not made for clients: issue it with the extended key usage clientAuth",
}
_REFUSED_OURS = "the client does not accept this broker's certificate ({}): give the client the authority that signed it as truststore, and check that the certificate names the host the client connects to"
_ALERTS = {
    "TLSV1_ALERT_UNKNOWN_CA": _REFUSED_OURS.format("unknown authority"),
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSED_OURS.format("bad certificate"),
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _REFUSED_OURS.format("certificate unknown"),
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _REFUSED_OURS.format("unsupported certificate"),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client says that this broker's certificate has expired: renew it (ssl.keystore.location; it is read again without a restart), or check the clocks",
    "TLSV1_ALERT_DECRYPT_ERROR": _REFUSED_OURS.format("decrypt error"),
    "TLSV1_ALERT_PROTOCOL_VERSION": "the client wants another version of TLS than ssl.enabled.protocols allows here",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the client found no TLS parameters in common; compare ssl.enabled.protocols and ssl.cipher.suites of both sides",
}
_OF_THE_CLIENT = "the client's certificate {}"


def why_resumed_too_late(certificate: bytes, now: datetime) -> str | None:
    """None while the certificate of a resumed session is valid. OpenSSL looks at its dates only when it makes a session."""
    _, end = validity_of(certificate)
    return _OF_THE_CLIENT.format(_VERIFY_CODES[_EXPIRED]) if now >= end else None


def why_failed(error: BaseException, first_bytes: bytes, tls: ListenerTls, listener: Listener) -> str | None:
    """None for what is no one's mistake: a port scan, a health check, a client that went away."""
    if first_bytes and first_bytes[0] != _HANDSHAKE_RECORD:
        return (
            f"it spoke plain text on listener {listener.name}, which expects TLS; set security.protocol={listener.protocol} at "
            "the client, or give it the port of a plaintext listener"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        what = _VERIFY_CODES.get(error.verify_code)
        return _OF_THE_CLIENT.format(what or f"is not accepted: {error.verify_message}")
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError):
        return None
    reason = error.reason or ""
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return (
            f"the client showed no certificate, and listener {listener.name} has ssl.client.auth={tls.client_auth}; give the "
            "client a key store (ssl.keystore.location)"
        )
    if reason in ("UNSUPPORTED_PROTOCOL", "VERSION_TOO_LOW", "WRONG_SSL_VERSION", "NO_PROTOCOLS_AVAILABLE"):
        versions = " to ".join(
            dict.fromkeys(v.name.replace("_", ".") for v in (tls.versions.lowest, tls.versions.highest))
        )
        return (
            f"the client and listener {listener.name} have no version of TLS in common; {versions} is spoken here "
            "(ssl.enabled.protocols)"
        )
    if reason == "NO_SHARED_CIPHER":
        return (
            f"the client and listener {listener.name} have no cipher suite in common that fits the broker's certificate; compare "
            "ssl.cipher.suites of both sides"
        )
    return _ALERTS.get(reason) or f"its TLS handshake failed ({reason or error})"

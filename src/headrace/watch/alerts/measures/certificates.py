"""Rules about certificates that expire, seen as any client sees them: by connecting to the listener.

Neither trust nor names are checked here: an expired certificate of an unknown authority has a date as well.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import replace
from datetime import UTC, datetime

from headrace.client.durations import show_seconds
from headrace.link.tls import Tls
from headrace.watch.alerts.conditions import CertificateExpiry
from headrace.watch.alerts.sight import Sight
from headrace.watch.alerts.states import Finding, Seen

_PATIENCE = 5.0
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_VERSION = 0xA0


def findings(condition: CertificateExpiry, sight: Sight, tls: Tls | None) -> list[Finding]:
    """One for each listener; ``tls`` is what the connection to the cluster uses, None when that is not encrypted."""
    listeners = dict.fromkeys(condition.listeners)
    if tls is not None:
        listeners.update(dict.fromkeys(f"{node.host}:{node.port}" for node in sight.session.nodes))
    return [_listener(condition, each, tls or Tls(), sight.now) for each in listeners]


def _listener(condition: CertificateExpiry, listener: str, tls: Tls, now: float) -> Finding:
    labels = (("listener", listener),)
    try:
        expires = expiry(listener, tls)
    except (OSError, ValueError) as error:
        return Finding(labels, Seen.MISSING, f"the certificate of {listener} cannot be seen: {error}")
    left = expires.timestamp() - now
    when = f"on {expires:%Y-%m-%d %H:%M} UTC"
    if left <= 0:
        return Finding(labels, Seen.ACTIVE, f"the certificate of {listener} expired {when}", left)
    summary = f"the certificate of {listener} expires in {show_seconds(left)}, {when}"
    return Finding(labels, Seen.ACTIVE if left < condition.within else Seen.CLEAR, summary, round(left))


def expiry(listener: str, tls: Tls) -> datetime:
    """When the certificate that a listener shows ends. OSError when it shows none, ValueError when it cannot be read."""
    host, _, port = listener.rpartition(":")
    host = host.strip("[]")
    context = replace(tls, check_hostname=False, check_certificate=False).context()
    with (
        socket.create_connection((host, int(port)), _PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    if shown is None:
        raise ssl.SSLError("it shows none")
    return not_after(shown)


def not_after(certificate: bytes) -> datetime:
    """The end of a DER certificate's validity (RFC 5280, 4.1). The standard library reads it of trusted certificates only."""
    try:
        _, body, _ = _element(certificate, 0)
        _, fields, _ = _element(body, 0)
        place = 0
        tag, _, after = _element(fields, place)
        if tag == _VERSION:
            place = after
        for _ in range(3):  # the serial number, the algorithm, the issuer
            _, _, place = _element(fields, place)
        _, validity, _ = _element(fields, place)
        _, _, place = _element(validity, 0)
        tag, text, _ = _element(validity, place)
        moment = text.decode("ascii")
        if tag == _UTC_TIME:
            moment = ("19" if int(moment[:2]) >= 50 else "20") + moment
        elif tag != _GENERALIZED_TIME:
            raise ValueError
        return datetime.strptime(moment, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except (IndexError, ValueError, UnicodeDecodeError):
        raise ValueError("its validity cannot be read") from None


def _element(data: bytes, place: int) -> tuple[int, bytes, int]:
    """The tag and content of the DER element that begins at a place, and the place after it."""
    tag, length = data[place], data[place + 1]
    begin = place + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(data[begin : begin + size], "big")
        begin += size
    if begin + length > len(data):
        raise ValueError
    return tag, data[begin : begin + length], begin + length

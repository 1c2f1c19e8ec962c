"""Certificates: when those that brokers show, and those in files, expire.

Reads the dates out of the DER form itself: the base install has nothing that does, and a certificate that this machine does not trust
has dates as well.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from headrace.client.durations import show_seconds
from headrace.watch.doctor import listeners
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, error, warning
from headrace.watch.doctor.scene import Scene

_PATIENCE = 5.0
_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_FILES = ("ssl.keystore.location", "ssl.truststore.location", "ssl.certificate.location", "ssl.ca.location")
_TEXTS = ("ssl.keystore.certificate.chain", "ssl.truststore.certificates")


class Unreadable(Exception):
    """These bytes are no certificate."""


def expires(certificate: bytes) -> float:
    """Seconds since 1970 until which a certificate in DER form is valid. Raises Unreadable."""
    try:
        _, body, _ = _element(certificate, 0)
        _, facts, _ = _element(body, 0)
        position = 0
        tag, _, after = _element(facts, 0)
        if tag == _VERSION:
            position = after
        for _ in range(3):  # serial number, algorithm, issuer
            _, _, position = _element(facts, position)
        _, validity, _ = _element(facts, position)
        _, _, position = _element(validity, 0)
        tag, end, _ = _element(validity, position)
        text = end.decode("ascii")
        if tag == _UTC_TIME:  # two digits of the year: 1950 to 2049
            text = ("19" if int(text[:2]) >= 50 else "20") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except (IndexError, ValueError) as wrong:
        raise Unreadable(str(wrong)) from None


def _element(data: bytes, start: int) -> tuple[int, bytes, int]:
    """Tag and contents of the element at `start`, and where the next one begins."""
    tag, length, position = data[start], data[start + 1], start + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[position : position + count], "big")
        position += count
    if position + length > len(data):
        raise ValueError("it ends early")
    return tag, data[position : position + length], position + length


def in_text(text: str) -> list[float]:
    """When each certificate of a PEM text expires."""
    found = []
    for part in text.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if end:
            try:
                found.append(expires(ssl.PEM_cert_to_DER_cert(f"{_BEGIN}{body}{_END}")))
            except (Unreadable, ValueError):
                continue
    return found


def shown_at(host: str, port: int) -> float | None:
    """When the certificate that a server shows expires; None when it shows none. Nothing is sent but the handshake."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), _PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            certificate = secure.getpeercert(binary_form=True)
            return None if certificate is None else expires(certificate)
    except (OSError, Unreadable):
        return None


def _certificates(scene: Scene) -> Iterator[Finding]:
    now = time.time()
    for place, until in sorted(_found(scene).items(), key=lambda each: each[1]):
        left = until - now
        if left >= scene.bounds.certificate_warning:
            continue
        when = f"expired {show_seconds(-left)} ago" if left < 0 else f"expires in {show_seconds(left)}"
        day = datetime.fromtimestamp(until, UTC).date().isoformat()
        say = error if left < scene.bounds.certificate_error else warning
        yield say(
            f"The certificate {place} {when} ({day}): after that no TLS connection is made with it.",
            "Put a new certificate in its place; a Headrace broker reads changed files again by itself, or at once after 'headrace "
            "configs alter broker ID --set ssl.keystore.location=…'.",
            [place],
        )


def _found(scene: Scene) -> dict[str, float]:
    """When each certificate expires, by where it was found."""
    found: dict[str, float] = {}
    for place, settings in _settings(scene).items():
        for name, value in settings.items():
            if name.endswith(_FILES):
                dates = _in_file(value)
            elif name.endswith(_TEXTS):
                dates = in_text(value)
            else:
                continue
            if dates:
                found[f"in {name} of {place}"] = min(dates)
    if scene.watch is not None:
        for broker, own in scene.broker_settings.items():
            for each in listeners.advertised(own) or listeners.bound(own):
                until = (
                    shown_at(each.host or "127.0.0.1", each.port) if each.is_encrypted and each.port else None
                )
                if until is not None:
                    found.setdefault(f"that broker {broker} shows at {each.address}", until)
    for contact in scene.contacts.reached:
        if scene.client.get("security.protocol", "").upper().endswith("SSL"):
            until = shown_at(contact.host, contact.port)
            if until is not None:
                found.setdefault(f"that broker {contact.broker} shows at {contact.address}", until)
    return found


def _settings(scene: Scene) -> dict[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {"the client settings": scene.client}
    if scene.file is not None:
        found[scene.file.path] = scene.file.settings
    return found


def _in_file(name: str) -> list[float]:
    try:
        return in_text(Path(name).read_text(errors="replace"))
    except OSError:
        return []


CERTIFICATES = Check(
    "certificates",
    Severity.ERROR,
    "when certificates expire: those that brokers show, and PEM files of the settings",
    Needs.SETTINGS,
    _certificates,
)

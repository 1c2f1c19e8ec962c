"""Certificates: when those that brokers show, and those in files, expire."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from headrace.client.durations import show_seconds
from headrace.link.certificates import MalformedCertificate, shown_at, validity_of
from headrace.link.tls import Tls
from headrace.watch.doctor import listeners
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, error, warning
from headrace.watch.doctor.scene import Scene

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_FILES = ("ssl.keystore.location", "ssl.truststore.location", "ssl.certificate.location", "ssl.ca.location")
_TEXTS = ("ssl.keystore.certificate.chain", "ssl.truststore.certificates")


def in_text(text: str) -> list[float]:
    """When each certificate of a PEM text expires."""
    found = []
    for part in text.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if end:
            try:
                found.append(_expires(ssl.PEM_cert_to_DER_cert(f"{_BEGIN}{body}{_END}")))
            except ValueError:
                continue
    return found


def _expires(certificate: bytes) -> float:
    """Seconds since 1970 until which a certificate in DER form is valid."""
    return validity_of(certificate)[1].timestamp()


def _shown_until(host: str, port: int) -> float | None:
    """When the certificate that a server shows expires; None when there is none to see."""
    try:
        return _expires(shown_at(host, port, Tls()))
    except (OSError, MalformedCertificate):
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
                encrypted = each.is_encrypted and each.port
                until = _shown_until(each.host or "127.0.0.1", each.port) if encrypted else None
                if until is not None:
                    found.setdefault(f"that broker {broker} shows at {each.address}", until)
    for contact in scene.contacts.reached:
        if scene.client.get("security.protocol", "").upper().endswith("SSL"):
            until = _shown_until(contact.host, contact.port)
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

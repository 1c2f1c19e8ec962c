"""The names in a certificate and its dates, and which certificate a listener shows. The subject is written as Java writes it (RFC 2253,
last part first): `CN=alice,OU=Sales,O=Example`.

Read from the DER bytes themselves: OpenSSL's own spelling differs from Java's in order, escapes and names of attributes, and ACLs
hold what Kafka users know. The standard library reads the dates of trusted certificates only.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.link.tls import Tls


_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_STRINGS = (12, 19, 20, 22, 27, 28, 30)
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString: Java takes them all for UTF-8."""
_ESCAPED = ',=+<>#;"\\'
_SEQUENCE, _SET, _VERSION, _EXTENSIONS, _UTC_TIME = 0x30, 0x31, 0xA0, 0xA3, 0x17
_ALTERNATIVE_NAMES = "2.5.29.17"
_EMAIL, _DNS, _URI, _IP = 0x81, 0x82, 0x86, 0x87
_TEXTS = {_EMAIL: "email", _DNS: "DNS", _URI: "URI"}


class MalformedCertificate(ValueError):
    pass


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate; empty when it has none."""
    subject = _parts(certificate)[4][1]
    names = [_relative_name(value) for tag, value, _ in _elements(subject) if tag == _SET]
    return ",".join(reversed(names))


def validity_of(certificate: bytes) -> tuple[datetime, datetime]:
    """From when and until when a DER certificate is valid."""
    validity = _parts(certificate)[3][1]
    begin, end = (_time(tag, value) for tag, value, _ in list(_elements(validity))[:2])
    return begin, end


def alternative_names_of(certificate: bytes) -> tuple[str, ...]:
    """The subject alternative names of a DER certificate: `DNS:localhost`, `IP:127.0.0.1`, …"""
    for tag, value, _ in _parts(certificate)[5:]:
        if tag == _EXTENSIONS:
            for _, extension, _ in _elements(_content(value, _SEQUENCE)):
                own = [content for _, content, _ in _elements(extension)]
                if not own:
                    raise MalformedCertificate("an extension is empty")
                oid, octets = own[0], own[-1]
                if _oid(oid) == _ALTERNATIVE_NAMES:
                    names = _elements(_content(octets, _SEQUENCE))
                    return tuple(_alternative_name(tag, name) for tag, name, _ in names)
    return ()


def shown_at(host: str, port: int, tls: Tls, patience: float = 5.0) -> bytes:
    """The DER certificate that a server shows, whether or not it is trusted and has the right name. Nothing is sent but the handshake.
    OSError when there is none to see."""
    context = replace(tls, check_hostname=False, check_certificate=False).context()
    with (
        socket.create_connection((host, port), patience) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    if shown is None:
        raise ssl.SSLError("it shows none")
    return shown


def _alternative_name(tag: int, value: bytes) -> str:
    if tag in _TEXTS:
        return f"{_TEXTS[tag]}:{value.decode(errors='replace')}"
    if tag == _IP and len(value) in (4, 16):
        return f"IP:{ip_address(value)}"
    return f"{tag & 0x1F}:{value.hex()}"


def _parts(certificate: bytes) -> list[tuple[int, bytes, bytes]]:
    """serialNumber, signature, issuer, validity, subject, and what may follow."""
    parts = list(_elements(_content(_content(certificate, _SEQUENCE), _SEQUENCE)))
    if parts and parts[0][0] == _VERSION:
        parts = parts[1:]
    if len(parts) < 5 or parts[3][0] != _SEQUENCE or parts[4][0] != _SEQUENCE:
        raise MalformedCertificate("the certificate has no subject")
    return parts


def _time(tag: int, value: bytes) -> datetime:
    text = value.decode("ascii", "replace").rstrip("Z")
    if tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise MalformedCertificate("the certificate's dates cannot be read") from None


def _relative_name(value: bytes) -> str:
    written = []
    for _, attribute, _ in _elements(value):
        (_, oid, _), (tag, text, whole) = list(_elements(attribute))[:2]
        number = _oid(oid)
        keyword = _KEYWORDS.get(number)
        if keyword is None or tag not in _STRINGS:
            written.append(f"{keyword or number}=#{whole.hex()}")
        else:
            written.append(f"{keyword}={_escape(text.decode(errors='replace'))}")
    return "+".join(written)


def _escape(text: str) -> str:
    escaped = "".join("\\00" if c == "\0" else f"\\{c}" if c in _ESCAPED else c for c in text)
    inner = escaped.strip(" \r")
    if not inner:
        return "".join(f"\\{c}" for c in escaped)
    start = escaped.index(inner)
    before, after = escaped[:start], escaped[start + len(inner) :]
    return "".join(f"\\{c}" for c in before) + inner + "".join(f"\\{c}" for c in after)


def _oid(data: bytes) -> str:
    numbers, value = [], 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise MalformedCertificate("an attribute has no type")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _content(data: bytes, expected: int) -> bytes:
    for tag, value, _ in _elements(data):
        if tag == expected:
            return value
        break
    raise MalformedCertificate("this is no certificate")


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, value and the whole of each element of a DER sequence."""
    position = 0
    while position < len(data):
        start, tag = position, data[position]
        if position + 2 > len(data):
            raise MalformedCertificate("an element is cut off")
        length = data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        if position + length > len(data):
            raise MalformedCertificate("an element is cut off")
        position += length
        yield tag, data[position - length : position], data[start:position]

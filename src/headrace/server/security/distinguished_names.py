"""The name in a certificate, written as Java writes it (RFC 2253, last part first): `CN=alice,OU=Sales,O=Example`.

Read from the DER bytes themselves: OpenSSL's own spelling differs from Java's in order, escapes and names of attributes, and ACLs
hold what Kafka users know.
"""

from __future__ import annotations

from collections.abc import Iterator

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
_STRINGS = {
    12: "utf-8",  # UTF8String
    19: "ascii",  # PrintableString
    20: "latin-1",  # T61String
    22: "ascii",  # IA5String
    27: "ascii",  # GeneralString
    28: "utf-32-be",  # UniversalString
    30: "utf-16-be",  # BMPString
}
_ESCAPED = ',=+<>#;"\\'
_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0


class MalformedCertificate(ValueError):
    pass


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate; empty when it has none."""
    body = _content(_content(certificate, _SEQUENCE), _SEQUENCE)
    parts = list(_elements(body))
    if parts and parts[0][0] == _VERSION:
        parts = parts[1:]
    # serialNumber, signature, issuer, validity, subject
    if len(parts) < 5 or parts[4][0] != _SEQUENCE:
        raise MalformedCertificate("the certificate has no subject")
    names = [_relative_name(value) for tag, value, _ in _elements(parts[4][1]) if tag == _SET]
    return ",".join(reversed(names))


def _relative_name(value: bytes) -> str:
    written = []
    for _, attribute, _ in _elements(value):
        (_, oid, _), (tag, text, whole) = list(_elements(attribute))[:2]
        number = _oid(oid)
        keyword = _KEYWORDS.get(number)
        if keyword is None or tag not in _STRINGS:
            written.append(f"{keyword or number}=#{whole.hex()}")
        else:
            written.append(f"{keyword}={_escape(text.decode(_STRINGS[tag], 'replace'))}")
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

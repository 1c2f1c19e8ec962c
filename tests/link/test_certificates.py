"""What a certificate says: its names in Java's spelling, and its dates."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from headrace.link.certificates import (
    MalformedCertificate,
    alternative_names_of,
    shown_at,
    subject_of,
    validity_of,
)
from headrace.link.tls import Tls


def certificate(*names: list[x509.NameAttribute]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.RelativeDistinguishedName(each) for each in names])
    begin = datetime.datetime(2020, 1, 2, 3, 4, 5)
    return (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin.replace(year=2060))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


def attribute(oid, value, kind=None):
    return x509.NameAttribute(oid, value, *([kind] if kind else []), _validate=False)


SUBJECTS = [
    [[attribute(NameOID.COMMON_NAME, "alice")]],
    [
        [attribute(NameOID.COUNTRY_NAME, "DE")],
        [attribute(NameOID.STATE_OR_PROVINCE_NAME, "Bayern")],
        [attribute(NameOID.LOCALITY_NAME, "München")],
        [attribute(NameOID.ORGANIZATION_NAME, "Acme, Inc.")],
        [attribute(NameOID.ORGANIZATIONAL_UNIT_NAME, 'a+b=c<d>;"e"#\\')],
        [attribute(NameOID.COMMON_NAME, " alice ")],
    ],
    [
        [attribute(NameOID.DOMAIN_COMPONENT, "org", _ASN1Type.IA5String)],
        [attribute(NameOID.DOMAIN_COMPONENT, "example", _ASN1Type.IA5String)],
        [attribute(NameOID.USER_ID, "u1"), attribute(NameOID.COMMON_NAME, "two in one")],
    ],
    [
        [attribute(NameOID.EMAIL_ADDRESS, "a@example.org", _ASN1Type.IA5String)],
        [attribute(NameOID.SERIAL_NUMBER, "42", _ASN1Type.PrintableString)],
        [attribute(NameOID.TITLE, "Dr.")],
        [attribute(NameOID.STREET_ADDRESS, "Main St. 1")],
    ],
    [[attribute(NameOID.ORGANIZATION_NAME, "a\0b\rc  d")], [attribute(NameOID.COMMON_NAME, "  ")]],
]


def test_a_name_is_spelled_as_java_spells_it():
    """The right column is what X500Principal.getName() says of these certificates."""
    found = [subject_of(certificate(*names)) for names in SUBJECTS]
    assert found == [
        "CN=alice",
        'CN=\\ alice\\ ,OU=a\\+b\\=c\\<d\\>\\;\\"e\\"\\#\\\\,O=Acme\\, Inc.,L=München,ST=Bayern,C=DE',
        "UID=u1+CN=two in one,DC=example,DC=org",
        "STREET=Main St. 1,2.5.4.12=#0c0344722e,2.5.4.5=#13023432,1.2.840.113549.1.9.1=#160d61406578616d706c652e6f7267",
        "CN=\\ \\ ,O=a\\00b\rc  d",
    ]


def test_the_dates_of_a_certificate():
    begin, end = validity_of(certificate([attribute(NameOID.COMMON_NAME, "a")]))
    assert (begin.isoformat(), end.isoformat()) == ("2020-01-02T03:04:05+00:00", "2060-01-02T03:04:05+00:00")


def test_what_is_no_certificate_is_refused():
    der = certificate([attribute(NameOID.COMMON_NAME, "alice")])
    for broken in (
        b"",
        b"\x30",
        b"hello",
        b"\x30\x82\xff\xff",
        b"\x30\x03\x02\x01\x01",
        bytes(200),
        der[:40],
        der[:100],
    ):
        for read in (subject_of, validity_of, alternative_names_of):
            with pytest.raises(MalformedCertificate):
                read(broken)


def test_where_nothing_listens_there_is_no_certificate_to_see():
    with pytest.raises(OSError, match="refused"):
        shown_at("127.0.0.1", 1, Tls())

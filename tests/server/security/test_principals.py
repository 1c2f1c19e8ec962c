"""Who a client is by its certificate: Java's spelling of the name, Kafka's mapping rules, and a builder of the operator's own."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.distinguished_names import MalformedCertificate, subject_of, validity_of
from headrace.server.security.principal_builder import AuthenticationContext, principal_builder
from headrace.server.security.principal_rules import BadRule, NoRule, PrincipalRules


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
    for broken in (b"", b"\x30", b"hello", der[:40], der[:100]):
        with pytest.raises(MalformedCertificate):
            subject_of(broken)


NAME = "CN=kafka-server.example.org,OU=Servers,O=Acme,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", NAME),
        ("", None),
        ("RULE:^CN=([^,]+),.*$/$1/", "kafka-server.example.org"),
        ("RULE:^CN=([^,]+),.*$/$1/U,DEFAULT", "KAFKA-SERVER.EXAMPLE.ORG"),
        ("RULE:^CN=(.*?)\\..*,O=(.*?),.*$/$1@$2/L, DEFAULT", "kafka-server@acme"),
        ("RULE:^CN=nobody$/x/,RULE:.*OU=Servers.*/a server/", "a server"),
        ("RULE:^CN=nobody$/x/ ,\n DEFAULT", NAME),
        ("RULE:^CN=nobody$/x/", None),
        ("RULE:^CN=(?<host>[^,]+),.*$/$1$7\\//", "kafka-server.example.org$7/"),
    ],
)
def test_rules(rules, name):
    if name is None:
        with pytest.raises(NoRule, match="applies to CN=kafka-server"):
            PrincipalRules(rules).name_of(NAME)
    else:
        assert PrincipalRules(rules).name_of(NAME) == name


@pytest.mark.parametrize("rules", ["RULE:a/b", "DEFAULT,x", "RULE:(/x/", "RULE:a/b/X", "default"])
def test_bad_rules_are_named(rules):
    with pytest.raises(BadRule, match=r"^ssl.principal.mapping.rules: "):
        PrincipalRules(rules)


class HostBuilder:
    """As an operator might write one."""

    def configure(self, settings):
        self.suffix = settings["broker.rack"]

    def build(self, context: AuthenticationContext) -> str:
        if context.client_address == "10.0.0.1":
            raise ValueError("10.0.0.1 is not welcome")
        return f"User:{context.client_address}-{context.listener}-{self.suffix}"


class NoBuilder:
    pass


def built(name):
    return principal_builder(BrokerConfig.load({"principal.builder.class": name, "broker.rack": "r"}))


def test_a_builder_of_the_operators_own():
    builder = built(f"{__name__}.HostBuilder")
    assert builder.build(AuthenticationContext("OUT", "SSL", "::1")) == "User:::1-OUT-r"


def test_kafkas_default_builder_by_its_java_name():
    builder = built("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder")
    assert builder.build(AuthenticationContext("OUT", "SSL", "::1")) == "User:ANONYMOUS"
    assert builder.build(AuthenticationContext("OUT", "SASL_SSL", "::1", b"x", "PLAIN", "ann")) == "User:ann"


@pytest.mark.parametrize(
    "name", ["com.acme.Builder", "Builder", f"{__name__}.Missing", f"{__name__}.NoBuilder"]
)
def test_another_builder_is_refused(name):
    with pytest.raises(ConfigError, match=rf"principal\.builder\.class={name} "):
        built(name)

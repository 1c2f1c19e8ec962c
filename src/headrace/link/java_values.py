"""Values that Kafka's Java client writes differently from librdkafka: logins, stores, class names, sizes.

Each function takes a value and returns librdkafka's settings for it, or raises SettingsError with the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from headrace.link.errors import SettingsError
from headrace.link.jaas import parse_jaas
from headrace.link.logins import TOKEN_LOGIN

_ASSIGNORS = {
    "rangeassignor": "range",
    "roundrobinassignor": "roundrobin",
    "cooperativestickyassignor": "cooperative-sticky",
    # librdkafka's sticky assignor is the cooperative one: the same balance, and partitions that stay are never stopped.
    "stickyassignor": "cooperative-sticky",
    "sticky": "cooperative-sticky",
}
_PARTITIONERS = {
    "defaultpartitioner": "murmur2_random",
    "uniformstickypartitioner": "random",
    "roundrobinpartitioner": "random",
}
_JKS_MAGIC = bytes.fromhex("feedfeed")
_DER_SEQUENCE = b"\x30"
"""How a PKCS#12 store begins."""
_BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_STORE_TYPES = {
    ".jks": "JKS",
    ".p12": "PKCS12",
    ".pfx": "PKCS12",
    ".pem": "PEM",
    ".crt": "PEM",
    ".cer": "PEM",
}
_JAAS_NAMES = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "Krb5LoginModule": {"principal": "sasl.kerberos.principal", "keyTab": "sasl.kerberos.keytab"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}


class Given(NamedTuple):
    """All settings that were given together, and the prefix under which the user knows their names."""

    settings: Mapping[str, str]
    prefix: str = ""

    def named(self, name: str) -> str:
        return f"{self.prefix}{name}"


Convert = Callable[[str, Given], dict[str, str]]


def login(jaas: str, given: Given) -> dict[str, str]:
    """`sasl.jaas.config`, such as `… required username="ann" password="secret";`."""
    entry = parse_jaas(jaas, given.named("sasl.jaas.config"))
    module = entry.module
    mechanism = given.settings.get("sasl.mechanism", given.settings.get("sasl.mechanisms", "")).upper()
    names = _JAAS_NAMES.get(module)
    if names is None and mechanism in _BY_PASSWORD:
        names = _JAAS_NAMES["PlainLoginModule"]  # a custom module with the options of Kafka's
    if names is None:
        raise SettingsError(
            f"{given.named('sasl.jaas.config')} names the login module {module}, which is Java code; "
            "use PLAIN, SCRAM or GSSAPI."
        )
    settings = {names[option]: value for option, value in entry.options.items() if option in names}
    if module == "ScramLoginModule" and entry.options.get("tokenauth", "").lower() == "true":
        settings[TOKEN_LOGIN] = "true"
    if "sasl.oauthbearer.client.id" in settings:
        settings["sasl.oauthbearer.method"] = "oidc"  # the way a client logs in with an id and a secret
    return settings


# --- certificates ---


def trust_store(store: str, given: Given) -> dict[str, str]:
    """`ssl.truststore.location`: librdkafka and Python take authorities as PEM only."""
    kind = _store_type(store, given.settings.get("ssl.truststore.type"), otherwise="PEM")
    if kind != "PEM":
        raise SettingsError(
            f"{given.named('ssl.truststore.location')}: the trust store {store} is {kind}; write it as PEM "
            f"(keytool -exportcert -rfc -keystore {store} -alias … > ca.pem) and give PEM files instead: "
            f"{given.named('ssl.ca.location')}=ca.pem."
        )
    return {"ssl.ca.location": store}


def key_store(store: str, given: Given) -> dict[str, str]:
    """`ssl.keystore.location`: PEM, or PKCS#12, which librdkafka reads under the same name.

    A store whose type is not given is what its file says, so settings that went through here once pass unchanged.
    """
    kind = _store_type(store, given.settings.get("ssl.keystore.type"), otherwise="PKCS12")
    if kind == "PKCS12":
        return {"ssl.keystore.location": store}
    if kind != "PEM":
        raise SettingsError(
            f"{given.named('ssl.keystore.location')}: the key store {store} is {kind}; convert it (keytool "
            f"-importkeystore -srckeystore {store} -destkeystore client.p12 -deststoretype PKCS12) and set "
            f"{given.named('ssl.keystore.type')}=PKCS12."
        )
    return {"ssl.certificate.location": store, "ssl.key.location": store}


def _store_type(store: str, given: str | None, otherwise: str) -> str:
    """The type that the user gives; else that of the file's contents; else, if it cannot be read, of its name."""
    if given is not None:
        return given.strip().upper()
    try:
        with open(store, "rb") as file:
            start = file.read(4)
    except (OSError, ValueError):
        return _STORE_TYPES.get(store[-4:].lower(), otherwise)  # the client says why it cannot read the file
    if start.startswith(_JKS_MAGIC):
        return "JKS"
    return "PKCS12" if start.startswith(_DER_SEQUENCE) else "PEM"


def two_phase_commit(value: str, given: Given) -> dict[str, str]:
    if value.strip().lower() == "true":
        raise SettingsError(
            f"{given.named('transaction.two.phase.commit.enable')} asks for two-phase commit, which librdkafka does "
            "not have; leave it out."
        )
    return {}


def endpoint_identification(value: str, given: Given) -> dict[str, str]:
    """Java turns the check of host names off with an empty value."""
    return {"ssl.endpoint.identification.algorithm": value.strip() or "none"}


def read_with_another(value: str, given: Given) -> dict[str, str]:
    """A setting that says how another one is to be read."""
    return {}


# --- groups and partitions ---


def assignors(value: str, given: Given) -> dict[str, str]:
    """`partition.assignment.strategy` from names or Java's classes."""
    chosen: list[str] = []
    for name in filter(None, (each.strip() for each in value.split(","))):
        assignor = _ASSIGNORS.get(name.rpartition(".")[2].lower(), name)
        if "." in assignor:
            raise SettingsError(
                f"{given.named('partition.assignment.strategy')}: the assignor {name} is Java code; "
                "use range, roundrobin, sticky or cooperative-sticky."
            )
        if assignor not in chosen:
            chosen.append(assignor)
    return {"partition.assignment.strategy": ",".join(chosen)} if chosen else {}


def check_assignors(strategy: str) -> None:
    """A member offers either eager or cooperative assignors. For consumers only: producers do not read the setting."""
    names = set(filter(None, strategy.split(",")))
    if "cooperative-sticky" in names and len(names) > 1:
        raise SettingsError(
            f"partition.assignment.strategy is {strategy}: librdkafka does not mix cooperative-sticky (which sticky "
            "means here) with assignors that rebalance eagerly; name cooperative-sticky alone, or only range and "
            "roundrobin."
        )


def partitioner(value: str, given: Given) -> dict[str, str]:
    known = _PARTITIONERS.get(value.rpartition(".")[2].lower())
    if known is None:
        raise SettingsError(
            f"{given.named('partitioner.class')}: the partitioner class {value} is Java code; choose the partition "
            f"of each record, or set {given.named('partitioner')}=<librdkafka's name>."
        )
    return {"partitioner": known}


# --- sizes and levels ---


def buffer_memory(value: str, given: Given) -> dict[str, str]:
    if not value.strip().isdecimal():
        raise SettingsError(f"{given.named('buffer.memory')} is {value!r}: it must be a number of bytes.")
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


def buffer_size(name: str) -> Convert:
    """Both clients have a value for the system's default: -1 in Java, 0 in librdkafka."""

    def convert(value: str, given: Given) -> dict[str, str]:
        return {name: "0" if value.strip() == "-1" else value}

    return convert


def compression_level(codec: str) -> Convert:
    """Java has a level for each codec; librdkafka has one, for the codec in use."""

    def convert(value: str, given: Given) -> dict[str, str]:
        return {"compression.level": value} if given.settings.get("compression.type") == codec else {}

    return convert

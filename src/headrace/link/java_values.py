"""Values that Kafka's Java client writes differently from librdkafka: logins, stores, class names, sizes.

Each function takes a value and returns librdkafka's settings for it, or raises SettingsError with the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from headrace.link.errors import SettingsError
from headrace.link.jaas import parse_jaas
from headrace.link.key_material import (
    KeyMaterialError,
    StoreKind,
    convert_jks,
    kind_of,
    read_trust_store,
)
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
_BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_STORE_TYPES = {
    ".jks": StoreKind.JKS,
    ".p12": StoreKind.PKCS12,
    ".pfx": StoreKind.PKCS12,
    ".pem": StoreKind.PEM,
    ".crt": StoreKind.PEM,
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
    """`ssl.truststore.location`: librdkafka and Python take authorities as PEM only, so PKCS12 is read here."""
    kind = _store_type(store, given.settings.get("ssl.truststore.type"), otherwise=StoreKind.PEM)
    if kind is StoreKind.JKS:
        raise SettingsError(
            convert_jks(store, given.named("ssl.truststore.location"), given.named("ssl.truststore.type"))
        )
    if kind is StoreKind.PKCS12:
        try:
            password = given.settings.get("ssl.truststore.password")
            return {"ssl.ca.pem": read_trust_store(store, password, given.prefix)}
        except KeyMaterialError as error:
            raise SettingsError(str(error)) from None
    return {"ssl.ca.location": store}


def key_store(store: str, given: Given) -> dict[str, str]:
    """`ssl.keystore.location`: PEM, or PKCS#12, which librdkafka reads under the same name.

    A store whose type is not given is what its file says, so settings that went through here once pass unchanged.
    """
    kind = _store_type(store, given.settings.get("ssl.keystore.type"), otherwise=StoreKind.PKCS12)
    if kind is StoreKind.JKS:
        raise SettingsError(
            convert_jks(store, given.named("ssl.keystore.location"), given.named("ssl.keystore.type"))
        )
    if kind is StoreKind.PKCS12:
        return {"ssl.keystore.location": store}
    return {"ssl.certificate.location": store, "ssl.key.location": store}


def _store_type(store: str, given: str | None, otherwise: StoreKind) -> StoreKind:
    """What the file holds; if it cannot be read, what the user says, or else its name suggests."""
    try:
        with open(store, "rb") as file:
            return kind_of(file.read(65536)) or otherwise
    except (OSError, ValueError):
        # The client says why it cannot read the file.
        named = _STORE_TYPES.get(store[-4:].lower(), otherwise)
        return StoreKind.__members__.get(given.strip().upper(), named) if given is not None else named


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

"""Settings of Kafka's Java client that librdkafka names otherwise, for all that take them: client, commands, Spark.

Owns how a login in JAAS form, key stores and assignors are read. Errors are a sentence without its full stop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

PEM_NAMES = {
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_ASSIGNORS = {
    "rangeassignor": "range",
    "roundrobinassignor": "roundrobin",
    "cooperativestickyassignor": "cooperative-sticky",
    # librdkafka's sticky assignor is the cooperative one: the same balance, and partitions that stay are never stopped.
    "stickyassignor": "cooperative-sticky",
    "sticky": "cooperative-sticky",
}
_JKS_MAGIC = bytes.fromhex("feedfeed")
_JAAS_MODULE = re.compile(r"^\s*([\w.$]+)\s+\w+\s*(.*?);?\s*$", re.DOTALL)
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s";]+))')


class SettingRefused(ValueError):
    """A setting that only a JVM can honour; the message says what to write instead."""


def jaas_options(text: str) -> dict[str, str]:
    """The options of a login module, as in `… required username="ann" password="secret";`."""
    return {
        name: bare or re.sub(r"\\(.)", r"\1", double or single)
        for name, double, single, bare in _JAAS_OPTION.findall(text)
    }


def login(jaas: str) -> dict[str, str]:
    """`sasl.jaas.config` as librdkafka's settings."""
    match = _JAAS_MODULE.match(jaas)
    if match is None:
        raise SettingRefused(
            'sasl.jaas.config cannot be read; it looks like \'<module> required username="…" password="…";\''
        )
    options = jaas_options(match[2])
    module = match[1].rpartition(".")[2]
    if module in ("PlainLoginModule", "ScramLoginModule"):
        return {"sasl.username": options.get("username", ""), "sasl.password": options.get("password", "")}
    if module == "Krb5LoginModule":
        names = {"principal": "sasl.kerberos.principal", "keyTab": "sasl.kerberos.keytab"}
        return {names[key]: text for key, text in options.items() if key in names}
    if module == "OAuthBearerLoginModule":
        names = {"clientId": "sasl.oauthbearer.client.id", "clientSecret": "sasl.oauthbearer.client.secret"}
        return {names[key]: text for key, text in options.items() if key in names}
    raise SettingRefused(
        f"sasl.jaas.config names the login module {module}, which is Java code; use PLAIN, SCRAM or GSSAPI"
    )


def endpoint_identification(value: str) -> str:
    return value.strip() or "none"


def assignors(names: Iterable[str]) -> str:
    """`partition.assignment.strategy` from names or Java's classes."""
    chosen: list[str] = []
    for name in filter(None, (each.strip() for each in names)):
        assignor = _ASSIGNORS.get(name.rpartition(".")[2].lower(), name)
        if "." in assignor:
            raise SettingRefused(
                f"the assignor {name} is Java code; use range, roundrobin, sticky or cooperative-sticky"
            )
        if assignor not in chosen:
            chosen.append(assignor)
    return ",".join(chosen)


def replace_stores(settings: dict[str, str]) -> None:
    """Java keeps certificates in stores; librdkafka wants PEM, or PKCS#12 for the client's own key.

    A key store whose type is not given is what its file says, so settings that went through here once pass unchanged.
    """
    trust = settings.pop("ssl.truststore.location", None)
    trust_type = settings.pop("ssl.truststore.type", "JKS").upper()
    settings.pop("ssl.truststore.password", None)
    if trust is not None:
        if trust_type != "PEM":
            raise SettingRefused(
                f"the trust store {trust} is {trust_type}; write it as PEM "
                f"(keytool -exportcert -rfc -keystore {trust} -alias … > ca.pem) and set ssl.ca.location=ca.pem"
            )
        settings["ssl.ca.location"] = trust
    given_type = settings.pop("ssl.keystore.type", None)
    store = settings.get("ssl.keystore.location")
    if store is None:
        return
    key_type = _key_store_type(store) if given_type is None else given_type.upper()
    if key_type == "PKCS12":
        return
    if key_type != "PEM":
        raise SettingRefused(
            f"the key store {store} is {key_type}; convert it (keytool -importkeystore -srckeystore {store} "
            "-destkeystore client.p12 -deststoretype PKCS12) and set ssl.keystore.type=PKCS12"
        )
    del settings["ssl.keystore.location"]
    settings["ssl.certificate.location"] = settings["ssl.key.location"] = store


def _key_store_type(store: str) -> str:
    try:
        with open(store, "rb") as file:
            return "JKS" if file.read(len(_JKS_MAGIC)) == _JKS_MAGIC else "PKCS12"
    except OSError:
        return "PKCS12"  # librdkafka says why it cannot read the file


def nearest(name: str, known: Iterable[str]) -> str | None:
    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return near[0] if near else None


COMMON = frozenset({
    "acks", "allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset", "batch.size",
    "bootstrap.servers", "client.dns.lookup", "client.id", "client.rack", "compression.type",
    "connections.max.idle.ms", "delivery.timeout.ms", "enable.auto.commit", "enable.idempotence",
    "fetch.max.bytes", "fetch.min.bytes", "group.id", "group.instance.id", "group.protocol",
    "heartbeat.interval.ms", "isolation.level", "linger.ms", "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes", "max.poll.interval.ms", "metadata.max.age.ms", "reconnect.backoff.max.ms",
    "reconnect.backoff.ms", "request.timeout.ms", "retries", "retry.backoff.ms", "sasl.mechanism",
    "sasl.password", "sasl.username", "security.protocol", "session.timeout.ms", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.truststore.location", "transactional.id",
})  # fmt: skip
"""Names worth offering when librdkafka knows none of the kind."""

"""The registry's settings, under the names that Confluent's registry has for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headrace.link.settings import KafkaSettings
from headrace.nearest import nearest
from headrace.registry.formats.compatibility import Level
from headrace.registry.records import TOPIC

DEFAULT_LISTEN = "127.0.0.1:8081"
STORE_PREFIX = "kafkastore."
_BOOTSTRAP = "kafkastore.bootstrap.servers"

SETTINGS = {
    _BOOTSTRAP: ("", "Any brokers of the cluster. (`--bootstrap-server`)"),
    "kafkastore.topic": (TOPIC, "The topic that holds everything."),
    "kafkastore.topic.replication.factor": (
        "3",
        "Of the topic, when the registry makes it; no more than there are brokers.",
    ),
    "listeners": (
        f"http://{DEFAULT_LISTEN}",
        "Where to listen: `http://` or `https://`, host and port. (`--listen`)",
    ),
    "host.name": (
        "",
        "The name under which other instances reach this one; the host that is listened on. (`--advertise`)",
    ),
    "schema.registry.group.id": (
        "schema-registry",
        "The group in which instances elect the one that writes.",
    ),
    "leader.eligibility": ("true", "Whether this instance may be elected."),
    "schema.compatibility.level": ("backward", "The compatibility level where none is set."),
    "mode.mutability": ("true", "Whether modes can be changed."),
    "ssl.keystore.location": ("", "The key and certificate for `https://`, PEM or PKCS12."),
    "ssl.keystore.password": ("", "Of the key store."),
    "ssl.key.password": ("", "Of the key in it."),
    "ssl.truststore.location": (
        "",
        "Authorities by which other instances' certificates are judged, and clients' where they need one.",
    ),
    "ssl.truststore.password": ("", "Of the trust store."),
    "ssl.client.authentication": (
        "NONE",
        "`NONE`, `REQUESTED` or `REQUIRED`: whether clients show a certificate.",
    ),
    "authentication.method": ("NONE", "`NONE`, `BASIC` (user and password) or `BEARER` (tokens)."),
    "authentication.realm": ("SchemaRegistry", "What a browser shows when it asks for a password."),
    "headrace.registry.users.file": ("", "Users for `BASIC`, or tokens for `BEARER`: one on each line."),
    "headrace.registry.acls.file": (
        "",
        "Who may do what with which subjects; without it, whoever is let in may do all.",
    ),
    "headrace.registry.session.timeout.ms": (
        "10000",
        "After how long without a sign of life another instance is elected.",
    ),
}
"""Default and meaning. Whatever else begins with `kafkastore.` is a setting of the connection to the cluster."""


class SettingError(ValueError):
    """The sentence for the user."""


class Authentication(StrEnum):
    NONE = "NONE"
    BASIC = "BASIC"
    BEARER = "BEARER"


@dataclass(frozen=True, slots=True)
class Settings:
    kafka: KafkaSettings
    given: Mapping[str, str]
    scheme: str
    host: str
    port: int
    level: Level
    authentication: Authentication

    def text(self, name: str) -> str:
        return self.given.get(name, SETTINGS[name][0])

    def flag(self, name: str) -> bool:
        return _flag(name, self.text(name))

    @property
    def topic(self) -> str:
        return self.text("kafkastore.topic")

    @property
    def replicas(self) -> int:
        return int(self.text("kafkastore.topic.replication.factor"))

    @property
    def group(self) -> str:
        return self.text("schema.registry.group.id")

    @property
    def session(self) -> float:
        return int(self.text("headrace.registry.session.timeout.ms")) / 1000


def read(given: Mapping[str, str]) -> Settings:
    """SettingError for what cannot be meant."""
    for name in given:
        if name not in SETTINGS and not name.startswith(STORE_PREFIX):
            near = nearest(name, SETTINGS)
            raise SettingError(
                f"There is no setting {name}."
                + (f" Did you mean {near}?" if near else " docs/schema-registry.md lists them.")
            )
    own = [name for name in SETTINGS if name.startswith(STORE_PREFIX) and name != _BOOTSTRAP]
    kafka = KafkaSettings.of(
        {name: value for name, value in given.items() if name.startswith(STORE_PREFIX) and name not in own},
        "the schema registry",
        STORE_PREFIX,
        "headrace-registry",
    )
    scheme, host, port = _listener(given.get("listeners", SETTINGS["listeners"][0]))
    level = Level.named(given.get("schema.compatibility.level", "backward"))
    if level is None:
        raise SettingError(
            f"schema.compatibility.level is one of {', '.join(each.lower() for each in Level)}."
        )
    method = given.get("authentication.method", "NONE").upper()
    if method not in Authentication.__members__:
        raise SettingError(f"authentication.method is {', '.join(Authentication)}, not {method}.")
    found = Settings(kafka, given, scheme, host, port, level, Authentication(method))
    _check(found)
    return found


def _check(settings: Settings) -> None:
    for name in ("leader.eligibility", "mode.mutability"):
        settings.flag(name)
    for name in ("kafkastore.topic.replication.factor", "headrace.registry.session.timeout.ms"):
        if not settings.text(name).isdigit() or int(settings.text(name)) < 1:
            raise SettingError(f"{name} is a number from 1 upwards, not '{settings.text(name)}'.")
    if settings.scheme == "https" and not settings.text("ssl.keystore.location"):
        raise SettingError(
            "A listener with https:// needs a key and a certificate: set ssl.keystore.location."
        )
    if settings.text("ssl.client.authentication").upper() not in ("NONE", "REQUESTED", "REQUIRED"):
        raise SettingError("ssl.client.authentication is NONE, REQUESTED or REQUIRED.")
    if settings.authentication is not Authentication.NONE and not settings.text(
        "headrace.registry.users.file"
    ):
        raise SettingError(
            f"authentication.method={settings.authentication} needs a file of users: set headrace.registry.users.file."
        )
    if settings.authentication is Authentication.NONE and settings.text("headrace.registry.acls.file"):
        raise SettingError(
            "headrace.registry.acls.file names users, but nobody has to say who they are: set authentication.method=BASIC or BEARER."
        )


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise SettingError(f"{name} is true or false, not '{text}'.")
    return text.lower() == "true"


def _listener(text: str) -> tuple[str, str, int]:
    scheme, separator, address = text.strip().partition("://")
    if not separator:
        scheme, address = "http", text.strip()
    host, _, port = address.rpartition(":")
    if scheme not in ("http", "https") or not host or not port.isdigit() or int(port) > 65535:
        raise SettingError(
            f"listeners takes http://HOST:PORT or https://HOST:PORT, one of them, not '{text}'."
        )
    return scheme, host.strip("[]"), int(port)

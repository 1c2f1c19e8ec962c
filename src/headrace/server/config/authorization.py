"""The settings of the authorizer: which one, its super users, and combinations that leave a cluster open or locked by mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headrace.server.config.definition import ConfigError
from headrace.server.config.listeners import Listener

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OLDER_NAMES = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
"""Authorizers of Kafka's ZooKeeper time, whose ACLs meant the same."""

ANONYMOUS = "User:ANONYMOUS"


class Settings(Protocol):
    """The broker's settings."""

    @property
    def static(self) -> Mapping[str, str]: ...

    @property
    def listeners(self) -> tuple[Listener, ...]: ...

    def string(self, name: str) -> str | None: ...

    def boolean(self, name: str) -> bool: ...

    def for_listener(self, listener: str) -> Settings: ...


def parse_super_users(text: str) -> frozenset[str]:
    """Principals separated by semicolons: a name, such as that of a certificate, may contain commas."""
    users = frozenset(filter(None, (part.strip() for part in text.split(";"))))
    for user in users:
        if ":" not in user:
            raise ConfigError(
                f"super.users: expected a string in format principalType:principalName but got {user}; "
                f"write User:{user}, and separate several with semicolons."
            )
    return users


def remarks(static: Mapping[str, str]) -> list[str]:
    """What became of an authorizer of another Kafka generation."""
    name = static.get("authorizer.class.name", "")
    return [f"authorizer.class.name={name} was removed in Kafka 4.0: {STANDARD} decides in its place."] * (
        name in OLDER_NAMES
    )


def check_authorization(config: Settings) -> None:
    """ConfigError when permissions would not hold, or nobody could do anything."""
    users = parse_super_users(config.string("super.users") or "")
    if not config.string("authorizer.class.name"):
        _check_nothing_promised(config)
    elif config.string("authorizer.class.name") in (STANDARD, *OLDER_NAMES):
        if ANONYMOUS in users or config.boolean("allow.everyone.if.no.acl.found"):
            return
        _check_login(config)


def _check_nothing_promised(config: Settings) -> None:
    strict = config.static.get("allow.everyone.if.no.acl.found", "true").lower() == "false"
    for name, promised in (
        ("super.users", bool(config.string("super.users"))),
        ("allow.everyone.if.no.acl.found", strict),
    ):
        if promised:
            raise ConfigError(
                f"{name} is set, but without an authorizer everyone may do everything: "
                f"set authorizer.class.name={STANDARD}, or remove {name}."
            )


def _check_login(config: Settings) -> None:
    """An authorizer needs a listener by which clients can say who they are."""
    for listener in config.listeners:
        client_auth = config.for_listener(listener.name).string("ssl.client.auth")
        if listener.protocol.startswith("SASL_") or (listener.protocol == "SSL" and client_auth != "none"):
            return
    named = ", ".join(f"{listener.name} ({listener.protocol})" for listener in config.listeners)
    raise ConfigError(
        f"authorizer.class.name is set, but clients cannot log in by any listener: {named}. Everyone would be "
        f"{ANONYMOUS} and denied everything. Add a SASL_SSL listener, or an SSL listener with "
        f"ssl.client.auth=required; to try out ACLs without a login, set super.users={ANONYMOUS}."
    )

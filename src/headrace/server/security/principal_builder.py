"""Who a connection belongs to: Kafka's rules, or a class of the operator's own, named by `principal.builder.class`.

Such a class is Python: `principal.builder.class=my.module.MyBuilder`. It is made without arguments, `configure(settings)` is called if it
has one, and `build(context)` returns a principal such as `User:alice`, or raises ValueError with the reason to refuse the connection.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headrace.link.certificates import subject_of
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.principal_rules import BadRule, PrincipalRules
from headrace.server.security.principals import ANONYMOUS, USER

_DEFAULT = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


@dataclass(frozen=True, slots=True)
class AuthenticationContext:
    """What is known of a connection when its principal is decided."""

    listener: str
    security_protocol: str
    client_address: str
    certificate: bytes | None = None
    """The client's certificate, DER, if it showed one that is trusted."""
    mechanism: str = ""
    """The SASL mechanism the client logged in with, if it did."""
    authorization_id: str = ""
    """The name it logged in with."""


class PrincipalBuilder(Protocol):
    def build(self, context: AuthenticationContext) -> str: ...


class DefaultPrincipalBuilder:
    """The SASL login's name, or the certificate's by ssl.principal.mapping.rules, or ANONYMOUS."""

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._rules = PrincipalRules(rules)

    def build(self, context: AuthenticationContext) -> str:
        if context.mechanism:
            return USER + context.authorization_id
        if context.certificate is None:
            return ANONYMOUS
        return USER + self._rules.name_of(subject_of(context.certificate))


def principal_of(builder: PrincipalBuilder, context: AuthenticationContext) -> str:
    """What the builder says, checked; ValueError with the reason to refuse the connection."""
    principal: object = builder.build(context)
    if not isinstance(principal, str) or not all(principal.partition(":")):
        raise ValueError(
            f"principal.builder.class built {principal!r}, which is no principal such as User:alice"
        )
    return principal


def principal_builder(own: BrokerConfig) -> PrincipalBuilder:
    """From a listener's settings; ConfigError with the remedy."""
    name = (own.string("principal.builder.class") or _DEFAULT).strip()
    if name != _DEFAULT:
        return _load(name, own)
    try:
        return DefaultPrincipalBuilder(own.string("ssl.principal.mapping.rules") or "DEFAULT")
    except BadRule as error:
        raise ConfigError(str(error)) from None


def _load(name: str, own: BrokerConfig) -> PrincipalBuilder:
    module, _, attribute = name.rpartition(".")
    try:
        made: object = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(
            f"principal.builder.class={name} cannot be used ({error}); it names a Python class that can be made without "
            "arguments, such as my.module.MyBuilder, not a Java class; leave it out for Kafka's default."
        ) from None
    if not callable(getattr(made, "build", None)):
        raise ConfigError(
            f"principal.builder.class={name} has no method build(context); docs/security.md shows one."
        )
    configure: Callable[[dict[str, str]], None] | None = getattr(made, "configure", None)
    if configure is not None:
        configure({**own.static, **own.dynamic_default, **own.dynamic_broker})
    return made  # type: ignore[return-value]

"""Makes the authorizer that the settings name: none, Kafka's, or a Python class."""

from __future__ import annotations

import importlib
from typing import cast

from headrace.server.config.authorization import OLDER_NAMES, STANDARD, parse_super_users
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.authorizer import AllowAll, Authorizer, StandardAuthorizer


def authorizer_of(config: BrokerConfig) -> Authorizer:
    """ConfigError when the class cannot be had."""
    name = config.string("authorizer.class.name")
    if not name:
        return AllowAll()
    if name in (STANDARD, *OLDER_NAMES):
        return StandardAuthorizer(
            parse_super_users(config.string("super.users") or ""),
            config.boolean("allow.everyone.if.no.acl.found"),
        )
    return _own(name, config)


def _own(name: str, config: BrokerConfig) -> Authorizer:
    module, _, attribute = name.rpartition(".")
    try:
        made = getattr(importlib.import_module(module), attribute)(dict(config.static))
    except Exception as error:
        raise ConfigError(
            f"authorizer.class.name={name} cannot be used ({type(error).__name__}: {error}): name {STANDARD}, or a "
            "Python class that is importable and takes the broker's settings."
        ) from error
    if not callable(getattr(made, "authorize", None)):
        raise ConfigError(f"authorizer.class.name={name} has no method authorize().")
    return cast(Authorizer, made)

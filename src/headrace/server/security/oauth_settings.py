"""OAUTHBEARER from a listener's settings. Settings that would accept any token, or none, are refused at start."""

from __future__ import annotations

from concurrent.futures import Executor

from headrace.clock import Clock
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.jwks import SCHEMES, KeyEndpoint, KeySet
from headrace.server.security.oauthbearer import OAuthBearer, TokenRules, TokenValidator


def oauthbearer_of(listener: str, config: BrokerConfig, threads: Executor, clock: Clock) -> OAuthBearer:
    handler = (config.string("sasl.server.callback.handler.class") or "").rpartition(".")[2]
    if handler not in ("", "OAuthBearerValidatorCallbackHandler"):
        raise ConfigError(
            f"sasl.server.callback.handler.class of listener {listener} names the Java class {handler}; remove it: "
            "tokens are checked against sasl.oauthbearer.jwks.endpoint.url."
        )
    url = config.string("sasl.oauthbearer.jwks.endpoint.url") or ""
    if not url.lower().startswith(SCHEMES):
        raise ConfigError(
            f"Listener {listener} offers OAUTHBEARER but cannot check tokens: set sasl.oauthbearer.jwks.endpoint.url "
            f"to the keys of the identity provider ({', '.join(SCHEMES)}…)."
        )
    issuer = config.string("sasl.oauthbearer.expected.issuer") or None
    audiences = tuple(filter(None, config.list("sasl.oauthbearer.expected.audience")))
    for name, given, unverified in (
        ("issuer", issuer, config.boolean("sasl.oauthbearer.allow.unverified.issuer")),
        ("audience", audiences, config.boolean("sasl.oauthbearer.allow.unverified.audience")),
    ):
        if not given and not unverified:
            raise ConfigError(
                f"Listener {listener} offers OAUTHBEARER but would take tokens of any {name}: set "
                f"sasl.oauthbearer.expected.{name}, or sasl.oauthbearer.allow.unverified.{name}=true if that is meant."
            )
    endpoint = KeyEndpoint(
        url=url,
        refresh=config.integer("sasl.oauthbearer.jwks.endpoint.refresh.ms") / 1000,
        backoff=config.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms") / 1000,
        backoff_max=config.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms") / 1000,
        timeout=config.integer("sasl.login.read.timeout.ms") / 1000,
    )
    rules = TokenRules(
        issuer=issuer,
        audiences=audiences,
        user_claim=config.string("sasl.oauthbearer.sub.claim.name") or "sub",
        scope_claim=config.string("sasl.oauthbearer.scope.claim.name") or "scope",
        skew_seconds=config.integer("sasl.oauthbearer.clock.skew.seconds"),
    )
    return OAuthBearer(TokenValidator(KeySet(endpoint, threads, clock), rules, clock))

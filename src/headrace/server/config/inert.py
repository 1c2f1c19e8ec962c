"""Known settings that do not act, each with the reason, and values that are refused.

A setting in `BROKER_SETTINGS` or `TOPIC_SETTINGS` is either read by the code that acts on it or listed in one of these tables; a
test checks both. An inert setting keeps its value and shows it, and setting it to anything but the default logs the reason. A
value is refused if an operator would otherwise rely on protection that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.server.config.definition import ConfigError

ONE_LOOP = "one event loop serves all connections; run more brokers (`--brokers N`) to use more cores"
NO_REMOTE = "there is no remote (tiered) storage"

_SETTINGS_WITHOUT_EFFECT: Mapping[str, tuple[str, ...]] = {
    ONE_LOOP: ("num.network.threads", "queued.max.requests"),
    "background work runs on the event loop, and what waits for a disk on the threads of num.io.threads": (
        "background.threads",
    ),
    "one cleaner process compacts one log at a time": ("log.cleaner.threads",),
    "the cleaner process writes in pieces of 1 MiB": ("log.cleaner.io.buffer.size",),
    "the partitions of a failed directory go offline at once, and the broker serves the others": (
        "log.dir.failure.timeout.ms",
    ),
    "a follower pulls everything from one leader over one connection": ("num.replica.fetchers",),
    "a coordinator loads its partition in pieces of 1 MiB": (
        "offsets.load.buffer.size",
        "transaction.state.log.load.buffer.size",
    ),
    "a replication throttle counts bytes as a debt that is paid off at its rate, without windows": (
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
    ),
    "share groups have one assignor": ("group.share.assignors",),
    NO_REMOTE: ("log.local.retention.bytes", "log.local.retention.ms"),
    "the Kerberos library renews tickets from the keytab by itself": (
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
    ),
}

INERT: Mapping[str, str] = {
    name: reason for reason, names in _SETTINGS_WITHOUT_EFFECT.items() for name in names
}
"""Broker settings that do not act, and why."""

INERT_IN_TOPICS: Mapping[str, str] = dict.fromkeys(
    (
        "local.retention.bytes",
        "local.retention.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    ),
    NO_REMOTE,
)
"""Topic settings that do not act, and why."""

INERT_WHILE_RUNNING: Mapping[str, str] = {
    "num.recovery.threads.per.data.dir": (
        "logs are recovered before a broker knows the cluster's settings; set it in the broker's file"
    ),
}
"""Broker settings that can change on a running cluster, as in Kafka, but act only from the file."""

ACTS_PER_LISTENER = frozenset(
    {
        "max.connections",
        "max.connection.creation.rate",
        "principal.builder.class",
        "connections.max.reauth.ms",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.server.max.receive.size",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.server.callback.handler.class",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.allow.unverified.issuer",
        "sasl.oauthbearer.allow.unverified.audience",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.login.read.timeout.ms",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.oauthbearer.token.endpoint.url",
    }
)
"""Settings that also act for one listener, as `listener.name.<listener>.<setting>`, beside those of TLS."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which values of a setting are accepted, and why no others are."""

    taken: tuple[str, ...]
    why: str


_NOT_REVOKED = "whether a certificate was revoked is not checked; remove the setting, and replace the authority of one that was."

REFUSED: Mapping[str, Refusal] = {
    "remote.log.storage.system.enable": Refusal(
        ("false",), f"{NO_REMOTE}; remove the setting and keep all segments on local disks."
    ),
    "transaction.two.phase.commit.enable": Refusal(
        ("false",), "two-phase commit is not offered; remove the setting."
    ),
    "zookeeper.ssl.crl.enable": Refusal(("false",), _NOT_REVOKED),
    "zookeeper.ssl.ocsp.enable": Refusal(("false",), _NOT_REVOKED),
}

REFUSED_IN_TOPICS: Mapping[str, Refusal] = {
    "remote.storage.enable": Refusal(
        ("false",),
        "Tiered Storage functionality is disabled in the broker. "
        "Topic cannot be configured with remote log storage; leave the setting out.",
    ),
}


def refuse(refused: Mapping[str, Refusal], name: str, text: str, base: str | None = None) -> None:
    """ConfigError when this value of a setting is refused; `base` is `name` without a listener's prefix."""
    refusal = refused.get(base or name)
    if refusal is not None and text.strip().lower() not in map(str.lower, refusal.taken):
        raise ConfigError(f"{name}={text.strip()} is refused: {refusal.why}")


def why_inert(name: str, base: str, running: bool) -> str | None:
    """Why a broker setting, set as `name` on a running cluster or in a file, does not act; None when it does."""
    reason = INERT.get(base) or (INERT_WHILE_RUNNING.get(base) if running else None)
    if reason is None and name != base and base not in ACTS_PER_LISTENER and not base.startswith("ssl."):
        reason = f"{base} counts for the whole broker, not for one listener"
    return reason


def without_effect(reasons: Iterable[tuple[str, str]]) -> str:
    """One line that names settings without effect, with each reason once."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons:
        by_reason.setdefault(reason, []).append(name)
    listed = "; ".join(f"{', '.join(sorted(names))} ({reason})" for reason, names in by_reason.items())
    return f"Settings without effect: {listed}."

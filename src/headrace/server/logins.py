"""Logging in to a broker: the gates of its SASL listeners, made from its settings, and the users of the cluster's metadata."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor

from headrace.clock import Clock
from headrace.server.cluster.node import ClusterNode
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.net.login_gate import Dispatch, LoginGate, LoginLimits
from headrace.server.security.login_journal import LoginJournal
from headrace.server.security.mechanisms import Grant
from headrace.server.security.offers import Users, login_settings, offer_of
from headrace.server.security.principal_builder import PrincipalBuilder
from headrace.server.security.principals import USER
from headrace.server.security.scram import Stored, TokenLogin
from headrace.server.security.tokens import TokenCredentials, TokenKeys

log = logging.getLogger("headrace")

THREADS = 4
"""They wait for identity providers and hash; none is started before it is needed."""


class Logins:
    def __init__(
        self,
        config: BrokerConfig,
        cluster: ClusterNode,
        principals: Mapping[str, PrincipalBuilder],
        dispatch: Dispatch,
        clock: Clock,
    ) -> None:
        """ConfigError when a listener's settings would keep everybody out."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="login")
        self._users = _ClusterUsers(cluster, config, clock, self._threads).users()
        journal = LoginJournal(clock)
        self._gates = {
            listener.name: LoginGate(
                listener,
                offer_of(config, listener.name, self._users),
                _limits(config, listener.name),
                principals[listener.name],
                dispatch,
                clock,
                journal,
            )
            for listener in config.listeners
            if listener.authenticated
        }
        self._settings = {name: login_settings(config, name) for name in self._gates}

    def gate(self, listener: str) -> LoginGate | None:
        """None where nobody has to log in."""
        return self._gates.get(listener)

    def configure(self, config: BrokerConfig) -> None:
        """Settings changed while the broker runs; they count for new logins."""
        for name, gate in self._gates.items():
            gate.limits = _limits(config, name)
            settings = login_settings(config, name)
            if settings == self._settings[name]:
                continue  # The keys of an identity provider, for one, stay known.
            self._settings[name] = settings
            try:
                gate.offer = offer_of(config, name, self._users)
            except ConfigError as error:
                log.error("The logins of listener %s stay as they were: %s", name, error)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _limits(config: BrokerConfig, listener: str) -> LoginLimits:
    own = config.for_listener(listener)
    return LoginLimits(
        max_frame=own.integer("sasl.server.max.receive.size"),
        failure_delay=own.integer("connection.failed.authentication.delay.ms") / 1000,
    )


class _ClusterUsers:
    """Those who are in the metadata, as of now at any time."""

    def __init__(self, cluster: ClusterNode, config: BrokerConfig, clock: Clock, threads: Executor) -> None:
        self._cluster = cluster
        self._clock = clock
        self._threads = threads
        secret = config.string("delegation.token.secret.key")
        self._credentials = TokenCredentials(TokenKeys(secret), threads) if secret else None

    def users(self) -> Users:
        with_tokens = self._credentials is not None
        return Users(self._scram, self._clock, self._threads, self._token if with_tokens else None)

    def _scram(self, user: str, mechanism: str) -> Stored | None:
        return self._cluster.image.scram.get((user, mechanism))

    async def _token(self, token_id: str, mechanism: str) -> TokenLogin:
        """A token that does not count costs no hash: anybody may ask for one, as often as they like."""
        assert self._credentials is not None
        token = self._cluster.image.tokens.get(token_id)
        if token is None or token.expired(self._clock.now_ms()):
            problem = (
                "there is no such delegation token" if token is None else "the delegation token has expired"
            )
            return TokenLogin(self._credentials.keys.decoy(token_id, mechanism), None, problem)
        credential = await self._credentials.of(token_id, mechanism)
        owner = token.owner.removeprefix(USER)
        return TokenLogin(credential, Grant(owner, mechanism, token.expires_ms, by_token=True), "")

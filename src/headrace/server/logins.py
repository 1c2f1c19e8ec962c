"""Logging in to a broker: the gates of its SASL listeners, made from its settings, and the users of the cluster's metadata."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor

from headrace.clock import Clock
from headrace.server.cluster.image import MetadataImage
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.net.login_gate import Dispatch, LoginGate, LoginLimits
from headrace.server.security.login_journal import LoginJournal
from headrace.server.security.mechanisms import Grant, Offer
from headrace.server.security.offers import Users, login_settings, offer_of
from headrace.server.security.principal_builder import PrincipalBuilder
from headrace.server.security.principals import USER
from headrace.server.security.scram import Stored, TokenLogin
from headrace.server.security.tokens import TokenCredentials, TokenKeys

log = logging.getLogger("headrace")

THREADS = 4
"""They wait for identity providers and hash; none is started before it is needed."""


class LoginOffers:
    """What the clients of each SASL listener may log in with. Made before the broker joins its cluster, so that settings which would
    keep everybody out stop it before anything has happened."""

    def __init__(self, config: BrokerConfig, image: Callable[[], MetadataImage], clock: Clock) -> None:
        """ConfigError when a listener's settings would keep everybody out. `image` is asked for when somebody logs in."""
        self._config = config
        self._clock = clock
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="login")
        self._users = _ClusterUsers(image, config, clock, self._threads).users()
        names = [listener.name for listener in config.listeners if listener.authenticated]
        self._offers = {name: offer_of(config, name, self._users) for name in names}
        self._settings = {name: login_settings(config, name) for name in names}

    def logins(self, principals: Mapping[str, PrincipalBuilder], dispatch: Dispatch) -> Logins:
        """The gates of the listeners, when the broker serves."""
        return Logins(self._config, self, principals, dispatch, self._clock)

    def of(self, listener: str) -> Offer:
        return self._offers[listener]

    def configure(self, config: BrokerConfig) -> None:
        """Settings changed while the broker runs; they count for new logins."""
        for name, before in self._settings.items():
            settings = login_settings(config, name)
            if settings == before:
                continue  # The keys of an identity provider, for one, stay known.
            self._settings[name] = settings
            try:
                self._offers[name] = offer_of(config, name, self._users)
            except ConfigError as error:
                log.error("The logins of listener %s stay as they were: %s", name, error)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Logins:
    def __init__(
        self,
        config: BrokerConfig,
        offers: LoginOffers,
        principals: Mapping[str, PrincipalBuilder],
        dispatch: Dispatch,
        clock: Clock,
    ) -> None:
        self._offers = offers
        journal = LoginJournal(clock)
        self._gates = {
            listener.name: LoginGate(
                listener,
                offers.of(listener.name),
                _limits(config, listener.name),
                principals[listener.name],
                dispatch,
                clock,
                journal,
            )
            for listener in config.listeners
            if listener.authenticated
        }

    def gate(self, listener: str) -> LoginGate | None:
        """None where nobody has to log in."""
        return self._gates.get(listener)

    def configure(self, config: BrokerConfig) -> None:
        """Settings changed while the broker runs; they count for new logins."""
        self._offers.configure(config)
        for name, gate in self._gates.items():
            gate.limits = _limits(config, name)
            gate.offer = self._offers.of(name)


def _limits(config: BrokerConfig, listener: str) -> LoginLimits:
    own = config.for_listener(listener)
    return LoginLimits(
        max_frame=own.integer("sasl.server.max.receive.size"),
        failure_delay=own.integer("connection.failed.authentication.delay.ms") / 1000,
    )


class _ClusterUsers:
    """Those who are in the metadata, as of now at any time."""

    def __init__(
        self, image: Callable[[], MetadataImage], config: BrokerConfig, clock: Clock, threads: Executor
    ) -> None:
        self._image = image
        self._clock = clock
        self._threads = threads
        secret = config.string("delegation.token.secret.key")
        self._credentials = TokenCredentials(TokenKeys(secret), threads) if secret else None

    def users(self) -> Users:
        with_tokens = self._credentials is not None
        return Users(self._scram, self._clock, self._threads, self._token if with_tokens else None)

    def _scram(self, user: str, mechanism: str) -> Stored | None:
        return self._image().scram.get((user, mechanism))

    async def _token(self, token_id: str, mechanism: str) -> TokenLogin:
        """A token that does not count costs no hash: anybody may ask for one, as often as they like."""
        assert self._credentials is not None
        token = self._image().tokens.get(token_id)
        if token is None or token.expired(self._clock.now_ms()):
            problem = (
                "there is no such delegation token" if token is None else "the delegation token has expired"
            )
            return TokenLogin(self._credentials.keys.decoy(token_id, mechanism), None, problem)
        credential = await self._credentials.of(token_id, mechanism)
        owner = token.owner.removeprefix(USER)
        return TokenLogin(credential, Grant(owner, mechanism, token.expires_ms, by_token=True), "")

"""The gates of a broker's SASL listeners, made from its settings and made anew when those change."""

from __future__ import annotations

import logging

from headrace.clock import Clock
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.net.login_gate import Dispatch, LoginGate, LoginLimits
from headrace.server.security.login_journal import LoginJournal
from headrace.server.security.offers import Users, login_settings, offer_of

log = logging.getLogger("headrace")


class Logins:
    def __init__(self, config: BrokerConfig, users: Users, dispatch: Dispatch, clock: Clock) -> None:
        """ConfigError when a listener's settings would keep everybody out."""
        self._users = users
        journal = LoginJournal(clock)
        self._gates = {
            listener.name: LoginGate(
                listener.name,
                offer_of(config, listener.name, users),
                _limits(config, listener.name),
                dispatch,
                clock,
                journal,
            )
            for listener in config.listeners
            if listener.protocol.startswith("SASL_")
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


def _limits(config: BrokerConfig, listener: str) -> LoginLimits:
    own = config.for_listener(listener)
    return LoginLimits(
        max_frame=own.integer("sasl.server.max.receive.size"),
        failure_delay=own.integer("connection.failed.authentication.delay.ms") / 1000,
    )

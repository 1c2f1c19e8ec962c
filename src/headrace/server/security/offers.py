"""Which SASL mechanisms a listener offers, from its settings. What cannot work is refused with the remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from headrace.clock import Clock
from headrace.link.errors import SettingsError
from headrace.link.jaas import JaasEntry, parse_jaas
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.definition import ConfigError
from headrace.server.security.mechanism_names import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_256, SCRAM_512
from headrace.server.security.mechanisms import Mechanism, Offer
from headrace.server.security.plain import USER_OPTION, PlainUsers
from headrace.server.security.scram import FindToken, FindUser, ScramUsers

SESSION_SETTING = "connections.max.reauth.ms"


@dataclass(frozen=True, slots=True)
class Users:
    """Where mechanisms look up those who log in, and what they do it with."""

    scram: FindUser
    clock: Clock
    threads: Executor
    """For whatever waits for somebody else."""
    token: FindToken | None = None


def offer_of(config: BrokerConfig, listener: str, users: Users) -> Offer:
    """ConfigError when nobody could log in to the listener, or not in the way that its settings promise."""
    own = config.for_listener(listener)
    names = [name.upper() for name in own.list("sasl.enabled.mechanisms") if name]
    if not names:
        raise ConfigError(
            f"Listener {listener} asks for a login but offers no mechanism: set sasl.enabled.mechanisms, "
            "for example to SCRAM-SHA-512."
        )
    mechanisms: dict[str, Mechanism] = {}
    sessions: dict[str, int] = {}
    for name in names:
        settings = config.for_listener(listener, name)
        make = _MAKERS.get(name)
        if make is None:
            raise ConfigError(
                f"Listener {listener} offers {name}, which is not served here: set sasl.enabled.mechanisms to some of "
                f"{', '.join(_MAKERS)}."
            )
        mechanisms[name] = make(_Listener(listener, name, settings), users)
        sessions[name] = settings.integer("connections.max.reauth.ms")
    return Offer(mechanisms, sessions)


def login_settings(config: BrokerConfig, listener: str) -> tuple[object, ...]:
    """Everything that `offer_of` goes by, to see whether it has changed."""
    names = [name for name in BROKER_SETTINGS if name.startswith("sasl.") or name == SESSION_SETTING]
    views = [config.for_listener(listener), *(config.for_listener(listener, name) for name in _MAKERS)]
    return tuple(view.value(name) for view in views for name in names)


@dataclass(frozen=True, slots=True)
class _Listener:
    """One mechanism of one listener, and the settings that count for it."""

    name: str
    mechanism: str
    config: BrokerConfig

    @property
    def jaas_name(self) -> str:
        return f"listener.name.{self.name.lower()}.{self.mechanism.lower()}.sasl.jaas.config"

    def jaas(self, module: str) -> JaasEntry | None:
        """The JAAS line, if it is for this mechanism."""
        text = self.config.string("sasl.jaas.config")
        if not text:
            return None
        try:
            entry = parse_jaas(text, self.jaas_name)
        except SettingsError as error:
            raise ConfigError(str(error)) from None
        return entry if entry.module == module else None


def _plain(listener: _Listener, users: Users) -> Mechanism:
    entry = listener.jaas("PlainLoginModule")
    options = entry.options if entry is not None else {}
    passwords = {
        name.removeprefix(USER_OPTION): password
        for name, password in options.items()
        if name.startswith(USER_OPTION) and name != USER_OPTION
    }
    if not passwords:
        raise ConfigError(
            f"Listener {listener.name} offers PLAIN but has no users, so nobody could log in: set {listener.jaas_name}="
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="<her password>";'
        )
    return PlainUsers(passwords)


def _scram(listener: _Listener, users: Users) -> Mechanism:
    return ScramUsers(listener.mechanism, users.scram, users.token)


def _oauthbearer(listener: _Listener, users: Users) -> Mechanism:
    try:
        from headrace.server.security.oauth_settings import oauthbearer_of
    except ImportError:
        raise ConfigError(
            f"Listener {listener.name} offers OAUTHBEARER, which needs PyJWT: pip install 'headrace[oauth]'."
        ) from None
    return oauthbearer_of(listener.name, listener.config, users.threads, users.clock)


def _gssapi(listener: _Listener, users: Users) -> Mechanism:
    try:
        from headrace.server.security.kerberos import kerberos_of
    except (ImportError, SettingsError):
        raise ConfigError(
            f"Listener {listener.name} offers GSSAPI, which needs the package gssapi and the system's Kerberos library: "
            "pip install 'headrace[kerberos]', or set sasl.enabled.mechanisms to another mechanism."
        ) from None
    return kerberos_of(listener.name, listener.config, listener.jaas("Krb5LoginModule"), users.threads)


_MAKERS: Mapping[str, Callable[[_Listener, Users], Mechanism]] = {
    PLAIN: _plain,
    SCRAM_256: _scram,
    SCRAM_512: _scram,
    OAUTHBEARER: _oauthbearer,
    GSSAPI: _gssapi,
}

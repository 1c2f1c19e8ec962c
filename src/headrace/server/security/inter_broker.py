"""How a broker logs in to the others: sasl.mechanism.inter.broker.protocol, with the JAAS line of its own listener."""

from __future__ import annotations

from headrace.link.errors import SettingsError
from headrace.link.java_values import Given, login
from headrace.link.logins import read_login
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.wire.sasl.logins import AnyLogin


def inter_broker_login(config: BrokerConfig) -> AnyLogin | None:
    """None where brokers speak without a login. ConfigError when the settings do not say whom to log in as."""
    name = config.inter_broker_listener
    listener = next((each for each in config.listeners if each.name == name), None)
    if listener is None or not listener.protocol.startswith("SASL_"):
        return None
    mechanism = (config.for_listener(name).string("sasl.mechanism.inter.broker.protocol") or "").upper()
    own = config.for_listener(name, mechanism)
    setting = f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    jaas = own.string("sasl.jaas.config")
    settings = {"sasl.mechanism": mechanism}
    if service := own.string("sasl.kerberos.service.name"):
        settings["sasl.kerberos.service.name"] = service
    if endpoint := own.string("sasl.oauthbearer.token.endpoint.url"):
        settings["sasl.oauthbearer.token.endpoint.url"] = endpoint
    try:
        if jaas:
            settings |= login(jaas, Given(settings))
        return read_login(settings, "")
    except SettingsError as error:
        raise ConfigError(
            f"Brokers log in to each other on listener {name} with {mechanism} (sasl.mechanism.inter.broker.protocol), but "
            f"{setting} does not say as whom: {error}"
        ) from None

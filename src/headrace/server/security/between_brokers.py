"""How a broker secures its connections to the others: the settings of the listener that brokers use among themselves."""

from __future__ import annotations

from dataclasses import replace

from headrace.link.errors import SettingsError
from headrace.link.settings import KafkaSettings
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError, format_value
from headrace.server.security.live_tls import TlsOfListener

_TLS = (
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.protocol",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
)


def between_brokers(config: BrokerConfig, client_id: str) -> KafkaSettings | None:
    """None for plain connections. ConfigError with the remedy."""
    name = config.inter_broker_listener
    protocol = next((each.protocol for each in config.listeners if each.name == name), "PLAINTEXT")
    if protocol == "PLAINTEXT":
        return None
    mechanism = config.for_listener(name).string("sasl.mechanism.inter.broker.protocol") or "GSSAPI"
    own = config.for_listener(name, mechanism if protocol.startswith("SASL_") else "")
    options = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        values = {setting: format_value(own.value(setting)) for setting in _TLS}
        options |= {setting: value for setting, value in values.items() if value}
        options["ssl.endpoint.identification.algorithm"] = (
            own.string("ssl.endpoint.identification.algorithm") or ""
        )
    if protocol.startswith("SASL_"):
        options["sasl.mechanism"] = mechanism
        options["sasl.jaas.config"] = own.string("sasl.jaas.config") or ""
        if service := own.string("sasl.kerberos.service.name"):
            options["sasl.kerberos.service.name"] = service
        if endpoint := own.string("sasl.oauthbearer.token.endpoint.url"):
            options["sasl.oauthbearer.token.endpoint.url"] = endpoint
    try:
        return KafkaSettings.between_brokers(options, client_id)
    except SettingsError as error:
        raise ConfigError(f"Listener {name}, which brokers use among themselves: {error}") from None


def with_the_key_of(listener: TlsOfListener | None, settings: KafkaSettings | None) -> KafkaSettings | None:
    """The settings with the certificate that the listener shows now, so that a new one that it does not take is not shown to the
    other brokers either."""
    if listener is None or settings is None or settings.tls is None:
        return settings
    pair = listener.current.pair
    text = f"{pair.key.decode()}\n{pair.chain.decode()}\n"
    tls = replace(settings.tls, pair_text=text, key_password=pair.password)
    return replace(settings, tls=tls)

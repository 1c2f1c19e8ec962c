"""How a broker secures its connections to the others: the settings of the listener that brokers use among themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.link.errors import SettingsError
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError, format_value
from headrace.server.security.mechanism_names import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_256, SCRAM_512

if TYPE_CHECKING:
    from headrace.link.settings import KafkaSettings
    from headrace.server.security.tls_of_listener import TlsOfListener

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

_KAFKA = "org.apache.kafka.common.security"
_SCRAM_LINE = f'{_KAFKA}.scram.ScramLoginModule required username="broker" password="<its password>";'
_JAAS_LINES = {
    PLAIN: (
        f'{_KAFKA}.plain.PlainLoginModule required username="broker" password="<its password>" '
        'user_broker="<its password>";'
    ),
    SCRAM_256: _SCRAM_LINE,
    SCRAM_512: _SCRAM_LINE,
    OAUTHBEARER: (
        f'{_KAFKA}.oauthbearer.OAuthBearerLoginModule required clientId="broker" clientSecret="<its secret>";'
    ),
    GSSAPI: (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        'keyTab="/path/kafka.keytab" principal="kafka/host@REALM";'
    ),
}
"""What a broker's own login looks like, by mechanism."""


def between_brokers(config: BrokerConfig, client_id: str) -> KafkaSettings | None:
    """None for plain connections. ConfigError with the remedy."""
    name = config.inter_broker_listener
    protocol = next((each.protocol for each in config.listeners if each.name == name), "PLAINTEXT")
    if protocol == "PLAINTEXT":
        return None
    # Imported here: plain connections have no need of it.
    from headrace.link.settings import KafkaSettings

    mechanism = (config.for_listener(name).string("sasl.mechanism.inter.broker.protocol") or GSSAPI).upper()
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
        options["sasl.jaas.config"] = _jaas_line(own, name, mechanism)
        if service := own.string("sasl.kerberos.service.name"):
            options["sasl.kerberos.service.name"] = service
        if endpoint := own.string("sasl.oauthbearer.token.endpoint.url"):
            options["sasl.oauthbearer.token.endpoint.url"] = endpoint
    try:
        return KafkaSettings.between_brokers(options, client_id)
    except SettingsError as error:
        raise ConfigError(f"Listener {name}, which brokers use among themselves: {error}") from None


def _jaas_line(own: BrokerConfig, listener: str, mechanism: str) -> str:
    """With which a broker logs in to the listener. ConfigError where that is bound to fail."""
    offered = [each for each in map(str.upper, own.list("sasl.enabled.mechanisms")) if each in _JAAS_LINES]
    if mechanism not in offered:
        raise ConfigError(
            f"Brokers log in to each other with {mechanism}, which listener {listener} does not offer: set "
            f"sasl.mechanism.inter.broker.protocol to {' or '.join(offered)}, or add {mechanism} to sasl.enabled.mechanisms."
        )
    line = own.string("sasl.jaas.config")
    if not line:
        raise ConfigError(
            f"Listener {listener}, which brokers use among themselves, has no login for them: set "
            f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config={_JAAS_LINES[mechanism]}"
        )
    return line


def with_the_key_of(listener: TlsOfListener | None, settings: KafkaSettings | None) -> KafkaSettings | None:
    """The settings with the certificate that the listener shows now, so that a new one that it does not take is not shown to the
    other brokers either."""
    if listener is None or settings is None or settings.tls is None:
        return settings
    pair = listener.current.pair
    text = f"{pair.key.decode()}\n{pair.chain.decode()}\n"
    tls = replace(settings.tls, pair_text=text, key_password=pair.password)
    return replace(settings, tls=tls)

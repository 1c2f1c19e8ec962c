"""TLS as a listener offers it: its context, from Kafka's settings, and who a client is by its certificate."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime

from headrace.link.certificates import alternative_names_of, subject_of, validity_of
from headrace.link.key_material import (
    KeyMaterialError,
    KeyPair,
    pem_authorities,
    pem_pair,
    read_key_store,
    read_trust_store,
    trust,
)
from headrace.link.tls_versions import TlsVersions, TlsVersionsError
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.config.listeners import Listener

_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """The TLS of one listener at one moment; a reload makes the next one."""

    context: ssl.SSLContext
    pair: KeyPair
    versions: TlsVersions
    client_auth: str
    valid_from: datetime
    valid_until: datetime


def listener_tls(config: BrokerConfig, listener: Listener) -> ListenerTls:
    """Reads files. ConfigError, with the remedy, for settings with which the listener cannot or must not be opened."""
    own = config.for_listener(listener.name)
    try:
        versions = TlsVersions.of(
            own.list("ssl.enabled.protocols"),
            own.string("ssl.protocol") or "TLSv1.3",
            own.list("ssl.cipher.suites"),
        )
        pair = key_pair(own)
        if pair is None:
            raise ConfigError(
                f"Listener {listener} needs a certificate: set ssl.keystore.location to a PEM or PKCS12 file with its "
                "private key and certificate chain (or ssl.keystore.key and ssl.keystore.certificate.chain to PEM text), for "
                f"this listener alone as listener.name.{listener.name.lower()}.ssl.keystore.location."
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        versions.apply_to(context)
        context.options |= (
            ssl.OP_NO_RENEGOTIATION | ssl.OP_IGNORE_UNEXPECTED_EOF | ssl.OP_CIPHER_SERVER_PREFERENCE
        )
        pair.load_into(context)
        client_auth = _client_auth(config, own, listener)
        _allow_tickets(context, client_auth)
        _ask_for_certificates(context, own, client_auth, listener)
    except (KeyMaterialError, TlsVersionsError) as error:
        raise ConfigError(f"Listener {listener}: {error}") from None
    return ListenerTls(context, pair, versions, client_auth, *validity_of(pair.certificate))


def _allow_tickets(context: ssl.SSLContext, client_auth: str) -> None:
    """A resumed session skips the look at the client's certificate, which may have expired since: no tickets where clients show one."""
    if client_auth == "none":
        context.num_tickets = 1
    else:
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET


def check_names(old: ListenerTls, new: ListenerTls, own: BrokerConfig, listener: Listener) -> None:
    """ConfigError when a running listener's certificate would lose a name that its clients and the other brokers know it by, and the
    settings do not allow that (KIP-978)."""
    before, after = old.pair.certificate, new.pair.certificate
    names = subject_of(before), subject_of(after)
    if not own.boolean("ssl.allow.dn.changes") and len({_folded(name) for name in names}) > 1:
        raise ConfigError(
            f"Listener {listener}: {new.pair.source}: the Keystore DistinguishedName does not match: existing DN={names[0]}, "
            f"new DN={names[1]}; issue it for the same name, or restart the broker with ssl.allow.dn.changes=true."
        )
    had, has = alternative_names_of(before), alternative_names_of(after)
    if not own.boolean("ssl.allow.san.changes") and not set(had) <= set(has):
        raise ConfigError(
            f"Listener {listener}: {new.pair.source}: the Keystore SubjectAltNames do not match: existing "
            f"SAN={', '.join(had)}, new SAN={', '.join(has) or 'none'}; issue it with the same names, or restart the broker with "
            "ssl.allow.san.changes=true."
        )


def _folded(name: str) -> str:
    """Names are equal whatever their case and blanks, as in Java."""
    return " ".join(name.lower().split())


def _client_auth(config: BrokerConfig, own: BrokerConfig, listener: Listener) -> str:
    """A SASL_SSL listener asks for certificates only if its own setting says so: Kafka's rule (KIP-684)."""
    chosen = own.string("ssl.client.auth") or "none"
    if listener.protocol == "SASL_SSL" and not config.set_for_listener(listener.name, "ssl.client.auth"):
        return "none"
    return chosen


def _ask_for_certificates(
    context: ssl.SSLContext, own: BrokerConfig, client_auth: str, listener: Listener
) -> None:
    if client_auth == "none":
        return
    trusted = authorities(own)
    if trusted is None:
        raise ConfigError(
            f"Listener {listener} has ssl.client.auth={client_auth} and no truststore, so it could not tell a good client "
            "certificate from a bad one: set ssl.truststore.location to the PEM or PKCS12 file of the authorities that sign "
            "your clients' certificates."
        )
    trust(context, *trusted)
    context.verify_mode = _VERIFY[client_auth]


def key_pair(own: BrokerConfig) -> KeyPair | None:
    """The key and certificate that a listener's settings name; None if they name none."""
    location = own.string("ssl.keystore.location")
    key, chain = own.string("ssl.keystore.key"), own.string("ssl.keystore.certificate.chain")
    password = own.string("ssl.key.password")
    if key or chain:
        if location:
            raise KeyMaterialError(
                "ssl.keystore.location and ssl.keystore.key are both set; give the key in one place."
            )
        if not key or not chain:
            raise KeyMaterialError(
                "ssl.keystore.key and ssl.keystore.certificate.chain belong together; one is missing."
            )
        return pem_pair(key.encode(), chain.encode(), password, "ssl.keystore.key")
    if not location:
        return None
    kind = own.string("ssl.keystore.type")
    return read_key_store(location, own.string("ssl.keystore.password"), password, named=kind)


def authorities(own: BrokerConfig) -> tuple[str, str] | None:
    """The trusted certificates as PEM, and what to call their source; None if the settings name none."""
    location, text = own.string("ssl.truststore.location"), own.string("ssl.truststore.certificates")
    if text:
        if location:
            raise KeyMaterialError(
                "ssl.truststore.location and ssl.truststore.certificates are both set; give the certificates in "
                "one place."
            )
        source = "ssl.truststore.certificates"
        return pem_authorities(text.encode(), source), source
    if not location:
        return None
    kind = own.string("ssl.truststore.type")
    trusted = read_trust_store(location, own.string("ssl.truststore.password"), named=kind)
    return trusted, f"ssl.truststore.location={location}"

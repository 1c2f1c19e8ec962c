"""TLS for the registry's listener and between its instances, from the key material that brokers take (link/key_material.py)."""

from __future__ import annotations

import ssl

from headrace.link.key_material import KeyMaterialError, read_key_store, read_trust_store, trust
from headrace.registry.settings import SettingError, Settings

_CLIENTS = {"NONE": ssl.CERT_NONE, "REQUESTED": ssl.CERT_OPTIONAL, "REQUIRED": ssl.CERT_REQUIRED}


def server_context(settings: Settings) -> ssl.SSLContext | None:
    """Of the listener; None where it is not encrypted. SettingError for files that cannot be used."""
    if settings.scheme != "https":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    clients = settings.text("ssl.client.authentication").upper()
    if clients != "NONE" and not settings.text("ssl.truststore.location"):
        raise SettingError(
            f"ssl.client.authentication={clients} needs authorities: set ssl.truststore.location."
        )
    _load(context, settings)
    context.verify_mode = _CLIENTS[clients]
    return context


def client_context(settings: Settings) -> ssl.SSLContext:
    """For what is passed on to another instance."""
    context = ssl.create_default_context()
    if settings.text("ssl.keystore.location"):
        _load(context, settings)
    elif settings.text("ssl.truststore.location"):
        _trust(context, settings)
    return context


def _load(context: ssl.SSLContext, settings: Settings) -> None:
    try:
        pair = read_key_store(
            settings.text("ssl.keystore.location"),
            settings.text("ssl.keystore.password") or None,
            settings.text("ssl.key.password") or None,
        )
        pair.load_into(context)
    except KeyMaterialError as error:
        raise SettingError(str(error)) from None
    if settings.text("ssl.truststore.location"):
        _trust(context, settings)


def _trust(context: ssl.SSLContext, settings: Settings) -> None:
    location = settings.text("ssl.truststore.location")
    try:
        trust(
            context,
            read_trust_store(location, settings.text("ssl.truststore.password") or None),
            f"ssl.truststore.location={location}",
        )
    except KeyMaterialError as error:
        raise SettingError(str(error)) from None

"""A client's login from its settings, by librdkafka's names."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.link.errors import SettingsError
from headrace.wire.sasl.logins import (
    BY_PASSWORD,
    GSSAPI,
    MECHANISMS,
    AnyLogin,
    BearerLogin,
    KerberosLogin,
    Login,
)

TOKEN_LOGIN = "headrace.sasl.tokenauth"
"""What `tokenauth=true` in a JAAS line becomes; librdkafka has nothing of the kind."""


def read_login(found: Mapping[str, str], prefix: str) -> AnyLogin:
    # librdkafka has both names.
    mechanism = found.get("sasl.mechanism", found.get("sasl.mechanisms", GSSAPI)).upper()
    if mechanism in BY_PASSWORD:
        return _by_password(mechanism, found, prefix)
    if mechanism == BearerLogin.mechanism:
        return _by_bearer(found, prefix)
    if mechanism == GSSAPI:
        return KerberosLogin(
            found.get("sasl.kerberos.service.name", "kafka"),
            found.get("sasl.kerberos.principal", ""),
            found.get("sasl.kerberos.keytab", ""),
        )
    raise SettingsError(
        f"{prefix}sasl.mechanism is {mechanism}; this client speaks {', '.join(MECHANISMS)}: set one of them."
    )


def _by_password(mechanism: str, found: Mapping[str, str], prefix: str) -> Login:
    username, password = found.get("sasl.username"), found.get("sasl.password")
    if username is None or password is None:
        raise SettingsError(
            f"SASL needs a user: set {prefix}sasl.jaas.config as for the Java client "
            f'(… LoginModule required username="…" password="…";), or {prefix}sasl.username and '
            f"{prefix}sasl.password."
        )
    return Login(mechanism, username, password, found.get(TOKEN_LOGIN, "").lower() == "true")


def _by_bearer(found: Mapping[str, str], prefix: str) -> BearerLogin:
    endpoint = found.get("sasl.oauthbearer.token.endpoint.url", "")
    if not endpoint.lower().startswith(("http://", "https://", "file:")):
        raise SettingsError(
            f"OAUTHBEARER needs a token: set {prefix}sasl.oauthbearer.token.endpoint.url to the identity provider's "
            "(https://…), or to a file with a token (file:///…)."
        )

    def credential(name: str) -> str:
        return found.get(f"sasl.oauthbearer.client.credentials.client.{name}") or found.get(
            f"sasl.oauthbearer.client.{name}", ""
        )

    if not endpoint.lower().startswith("file:") and not (credential("id") and credential("secret")):
        raise SettingsError(
            f"OAUTHBEARER needs a client: set {prefix}sasl.oauthbearer.client.credentials.client.id and "
            f"{prefix}sasl.oauthbearer.client.credentials.client.secret."
        )
    pairs = (pair.partition("=") for pair in found.get("sasl.oauthbearer.extensions", "").split(",") if pair)
    return BearerLogin(
        endpoint,
        credential("id"),
        credential("secret"),
        found.get("sasl.oauthbearer.scope", ""),
        tuple((name.strip(), value.strip()) for name, _, value in pairs),
    )

"""Kerberos for clients: tickets for a broker, through the system's GSSAPI (the extra `headrace[kerberos]`)."""

from __future__ import annotations

from collections.abc import Generator

from headrace.link.errors import BrokerUnavailable, SettingsError
from headrace.wire.sasl import gssapi as exchange
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.logins import KerberosLogin

try:
    import gssapi
    from gssapi.exceptions import GSSError
except ImportError as error:
    raise SettingsError(
        f"GSSAPI needs the package gssapi and the system's Kerberos library ({error}): pip install 'headrace[kerberos]'."
    ) from None


class KerberosContext:
    """A context of the `gssapi` package in the form that the exchange takes."""

    def __init__(self, context: gssapi.SecurityContext) -> None:
        self._context = context

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    def step(self, token: bytes | None) -> bytes | None:
        answer: bytes | None = self._context.step(token)
        return answer

    def wrap(self, message: bytes) -> bytes:
        return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        return bytes(self._context.unwrap(message).message)


def client_exchange(login: KerberosLogin, host: str) -> Generator[bytes, bytes]:
    """Yields what to send and takes what came back. Asks the key distribution centre for a ticket on the way."""
    try:
        target = gssapi.Name(f"{login.service}@{host}", gssapi.NameType.hostbased_service)
        context = gssapi.SecurityContext(
            name=target,
            creds=_credentials(login),
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=[
                gssapi.RequirementFlag.mutual_authentication,
                gssapi.RequirementFlag.integrity,
                gssapi.RequirementFlag.out_of_sequence_detection,
            ],
        )
        yield from exchange.client_exchange(KerberosContext(context))
    except GSSError as error:
        raise SaslError(f"Kerberos: {_said(error)}") from None


def _credentials(login: KerberosLogin) -> gssapi.Credentials | None:
    """The keytab's; None for those of the ticket cache."""
    if not login.keytab:
        return None
    name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal) if login.principal else None
    store = {"client_keytab": login.keytab, "ccache": f"MEMORY:headrace-{login.principal}"}
    try:
        return gssapi.Credentials(name=name, usage="initiate", store=store)
    except GSSError as error:
        raise BrokerUnavailable(
            f"{login.username} gets no ticket with the keytab {login.keytab}: {_said(error)}"
        ) from None


def _said(error: GSSError) -> str:
    text: str = error.get_all_statuses(error.min_code, False)[0] if error.min_code else str(error)
    return text

"""What a client logs in with, one class for each way to do so, and the exchange of those that need nobody else."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import ClassVar

from headrace.wire.sasl import oauthbearer, plain, scram

BY_PASSWORD = (plain.MECHANISM, *scram.ALGORITHMS)
GSSAPI = "GSSAPI"
MECHANISMS = (*BY_PASSWORD, oauthbearer.MECHANISM, GSSAPI)


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a password."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    by_token: bool = False
    """They are the id and the HMAC of a delegation token (SCRAM only)."""


@dataclass(frozen=True, slots=True)
class BearerLogin:
    """A token from an identity provider, or from a file."""

    mechanism: ClassVar[str] = oauthbearer.MECHANISM
    endpoint: str
    """Where the token comes from: http://, https:// or file://."""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    timeout: float = 10.0

    @property
    def username(self) -> str:
        """For messages; the token says who the client is."""
        return self.client_id or self.endpoint


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """A ticket of the Kerberos cache, or one that a keytab's principal gets."""

    mechanism: ClassVar[str] = GSSAPI
    service: str = "kafka"
    principal: str = ""
    keytab: str = ""

    @property
    def username(self) -> str:
        """For messages."""
        return self.principal or "the Kerberos cache's principal"


AnyLogin = Login | BearerLogin | KerberosLogin


def client_exchange(login: Login) -> Generator[bytes, bytes]:
    """Yields what to send and takes what came back. Ends when the client has nothing more to say."""
    if login.mechanism == plain.MECHANISM:
        yield plain.client_message(login.username, login.password)
        return
    extensions = {"tokenauth": "true"} if login.by_token else None
    yield from scram.client_exchange(login.mechanism, login.username, login.password, extensions)

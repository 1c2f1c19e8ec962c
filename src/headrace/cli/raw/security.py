"""TLS and SASL for the plain socket, from the same settings that librdkafka gets: PLAIN and SCRAM."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from headrace.cli.failure import Failure

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
Conversation = Generator[bytes | None, bytes | None, None]


@dataclass(frozen=True, slots=True)
class Security:
    settings: Mapping[str, str]

    @property
    def protocol(self) -> str:
        return self.settings.get("security.protocol", "PLAINTEXT").upper()

    @property
    def mechanism(self) -> str | None:
        if not self.protocol.startswith("SASL"):
            return None
        return (
            self.settings.get("sasl.mechanism") or self.settings.get("sasl.mechanisms") or "GSSAPI"
        ).upper()

    def wrap(self, plain: socket.socket, host: str) -> socket.socket:
        if not self.protocol.endswith("SSL"):
            return plain
        import ssl

        try:
            context = ssl.create_default_context(
                cafile=self.settings.get("ssl.ca.location"), cadata=self.settings.get("ssl.ca.pem")
            )
            certificate = self.settings.get("ssl.certificate.location")
            if certificate is not None:
                key = self.settings.get("ssl.key.location")
                context.load_cert_chain(certificate, key, self.settings.get("ssl.key.password"))
        except (OSError, ssl.SSLError) as error:
            raise Failure(
                f"The TLS settings are not usable ({error}); check ssl.* in --command-config."
            ) from None
        if self.settings.get("ssl.endpoint.identification.algorithm", "https") == "none":
            context.check_hostname = False
        if self.settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(plain, server_hostname=host)

    def conversation(self) -> Conversation:
        """What to send, one message after the other; takes what the broker answered."""
        user, password = self.settings.get("sasl.username", ""), self.settings.get("sasl.password", "")
        if self.mechanism == "PLAIN":
            return _plain(user, password)
        if self.mechanism in _HASHES:
            return _scram(_HASHES[self.mechanism], user, password)
        raise Failure(f"This request supports sasl.mechanism PLAIN and SCRAM, not {self.mechanism}.")


def _plain(user: str, password: str) -> Conversation:
    yield f"\0{user}\0{password}".encode()


def _scram(algorithm: str, user: str, password: str) -> Conversation:
    """RFC 5802 without channel binding."""
    nonce = secrets.token_urlsafe(24)
    first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = yield f"n,,{first}".encode()
    server_first = (challenge or b"").decode()
    fields = dict(part.partition("=")[::2] for part in server_first.split(","))
    if not fields.get("r", "").startswith(nonce) or not {"s", "i"} <= fields.keys():
        raise Failure("The broker's SCRAM answer does not belong to this login.")
    salted = hashlib.pbkdf2_hmac(
        algorithm, password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
    )
    final = f"c=biws,r={fields['r']}"
    message = f"{first},{server_first},{final}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), message, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    outcome = yield f"{final},p={base64.b64encode(proof).decode()}".encode()
    server_signature = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), message, algorithm)
    if (outcome or b"").decode() != f"v={base64.b64encode(server_signature).decode()}":
        raise Failure(
            "The broker could not prove that it knows the password; it may not be who it claims to be."
        )

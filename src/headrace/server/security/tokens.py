"""The secrets of delegation tokens: each is made from the token's id and the key that all brokers share."""

from __future__ import annotations

import base64
import hmac

from headrace.wire.sasl.scram import FEWEST_ITERATIONS, ScramCredential

_SALT_BYTES = 24


class TokenKeys:
    def __init__(self, secret: str) -> None:
        """`secret` is delegation.token.secret.key."""
        self._secret = secret.encode()

    def hmac(self, token_id: str) -> bytes:
        """What its owner logs in with; a token's whole secret."""
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def is_of(self, token_id: str, given: bytes) -> bool:
        return hmac.compare_digest(self.hmac(token_id), given)

    def credential(self, token_id: str, mechanism: str) -> ScramCredential:
        """What a login is judged by, for any id, known or not. Takes milliseconds: call it in a thread."""
        password = base64.b64encode(self.hmac(token_id)).decode()
        salt = hmac.digest(self._secret, f"{mechanism} {token_id}".encode(), "sha256")[:_SALT_BYTES]
        return ScramCredential.of_password(mechanism, password, salt, FEWEST_ITERATIONS)

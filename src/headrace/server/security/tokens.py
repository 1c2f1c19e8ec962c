"""The secrets of delegation tokens: each is made from the token's id and the key that all brokers share."""

from __future__ import annotations

import asyncio
import base64
import hmac
import secrets
from collections import OrderedDict
from concurrent.futures import Executor

from headrace.wire.sasl.scram import ALGORITHMS, FEWEST_ITERATIONS, ScramCredential

MOST_KEPT = 10_000
"""Credentials that are kept; each takes a few hundred bytes."""
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
        """What a login is judged by. Takes milliseconds: call it in a thread."""
        password = base64.b64encode(self.hmac(token_id)).decode()
        return ScramCredential.of_password(
            mechanism, password, self._salt(token_id, mechanism), FEWEST_ITERATIONS
        )

    def decoy(self, token_id: str, mechanism: str) -> ScramCredential:
        """Asks as `credential` does, and no answer to it is right. Takes no time, so that strangers cannot keep threads busy."""
        size = len(hmac.digest(b"", b"", ALGORITHMS[mechanism]))
        return ScramCredential(
            self._salt(token_id, mechanism),
            FEWEST_ITERATIONS,
            secrets.token_bytes(size),
            secrets.token_bytes(size),
        )

    def _salt(self, token_id: str, mechanism: str) -> bytes:
        return hmac.digest(self._secret, f"{mechanism} {token_id}".encode(), "sha256")[:_SALT_BYTES]


class TokenCredentials:
    """Hashes for a token once, in a thread, however many clients log in with it; used on one event loop."""

    def __init__(self, keys: TokenKeys, threads: Executor) -> None:
        self.keys = keys
        self._threads = threads
        self._kept: OrderedDict[tuple[str, str], asyncio.Future[ScramCredential]] = OrderedDict()
        """Made, or in the making; those used last come last."""

    async def of(self, token_id: str, mechanism: str) -> ScramCredential:
        """Only for tokens that exist: what strangers name must not push those out."""
        key = (token_id, mechanism)
        if key not in self._kept:
            loop = asyncio.get_running_loop()
            self._kept[key] = loop.run_in_executor(self._threads, self.keys.credential, token_id, mechanism)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return await asyncio.shield(self._kept[key])

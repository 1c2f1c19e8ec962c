"""The keys of an identity provider: a JWK set at a URL or in a file, fetched in a thread and kept.

Keys are fetched anew every so often, and at once when a token names one that is not known. While the endpoint is away the keys
that are known go on counting.
"""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.clock import Clock

if TYPE_CHECKING:
    from jwt import PyJWK

log = logging.getLogger("headrace.login")

LARGEST_SET = 1024 * 1024
SCHEMES = ("http://", "https://", "file://")


class KeyUnavailable(Exception):
    """Why a token's key cannot be had."""


@dataclass(frozen=True, slots=True)
class KeyEndpoint:
    url: str
    refresh: float
    """Seconds after which the keys are fetched again."""
    backoff: float
    backoff_max: float
    """Between tries while the endpoint does not answer, in seconds, doubled from the first to the second."""
    timeout: float


@dataclass(frozen=True, slots=True)
class LoadedKeys:
    keys: Mapping[str, PyJWK]
    """Signing keys by id."""
    unusable: frozenset[tuple[str, str]]
    """(id, type) of those that cannot be used here."""


class KeySet:
    def __init__(self, settings: KeyEndpoint, threads: Executor, clock: Clock) -> None:
        self._settings = settings
        self._threads = threads
        self._clock = clock
        self._keys: Mapping[str, PyJWK] = {}
        self._unusable: frozenset[tuple[str, str]] = frozenset()
        """Those that the log has named."""
        self._fetched_at: float | None = None
        self._next_try = 0.0
        self._failures = 0
        self._problem = ""
        self._fetching: asyncio.Future[None] | None = None

    async def key(self, key_id: str | None) -> PyJWK:
        """The key of this id, or the only one there is. KeyUnavailable with the reason."""
        found = self._find(key_id)
        if found is None:
            if self._may_try():
                await self._fetch()  # Perhaps the provider has a new key; at first it has only such.
            found = self._find(key_id)
        elif self._is_due() and self._may_try() and self._fetching is None:
            self._begin()  # The key counts meanwhile.
        if found is None:
            raise KeyUnavailable(self._why(key_id))
        return found

    def _find(self, key_id: str | None) -> PyJWK | None:
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    def _why(self, key_id: str | None) -> str:
        if self._problem:
            return f"the keys at {self._settings.url} cannot be fetched ({self._problem})"
        named = (
            "the token names no key" if key_id is None else f"the token is signed with key {key_id[:100]!r}"
        )
        return f"{named}, which is not among the {len(self._keys)} at {self._settings.url}"

    def _is_due(self) -> bool:
        fetched = self._fetched_at
        return fetched is None or self._clock.monotonic() - fetched >= self._settings.refresh

    def _may_try(self) -> bool:
        return self._clock.monotonic() >= self._next_try

    async def _fetch(self) -> None:
        """Everybody who waits for the keys waits for the same request."""
        if self._fetching is None:
            self._begin()
        assert self._fetching is not None
        await asyncio.shield(self._fetching)

    def _begin(self) -> None:
        self._fetching = asyncio.ensure_future(self._fetch_once())

    async def _fetch_once(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            loaded = await loop.run_in_executor(self._threads, load_keys, self._settings)
        except Exception as error:  # Whatever the endpoint did, the keys could not be fetched.
            self._failed(error)
        else:
            self._keys = loaded.keys
            self._name_unusable(loaded.unusable)
            if self._problem:
                log.info("The keys at %s can be fetched again.", self._settings.url)
            self._fetched_at = self._clock.monotonic()
            self._failures, self._problem = 0, ""
            # A token with a key that nobody knows must not make the broker ask without end.
            self._next_try = self._fetched_at + self._settings.backoff
        finally:
            self._fetching = None

    def _name_unusable(self, unusable: frozenset[tuple[str, str]]) -> None:
        for key_id, kind in sorted(unusable - self._unusable):
            log.warning(
                "Key %r of type %s at %s cannot be used here, and neither can tokens signed with it; the others count.",
                key_id,
                kind,
                self._settings.url,
            )
        self._unusable |= unusable

    def _failed(self, error: Exception) -> None:
        reason = (
            getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or repr(error)
        )
        if not self._problem:
            log.warning(
                "The keys for OAUTHBEARER at %s cannot be fetched: %s. %s Check sasl.oauthbearer.jwks.endpoint.url and the "
                "identity provider.",
                self._settings.url,
                reason,
                "The keys fetched before go on counting."
                if self._keys
                else "Nobody can log in with a token.",
            )
        self._problem = str(reason)
        wait = min(self._settings.backoff * 2**self._failures, self._settings.backoff_max)
        self._failures = min(self._failures + 1, 30)
        self._next_try = self._clock.monotonic() + wait


def load_keys(settings: KeyEndpoint) -> LoadedKeys:
    """What the endpoint has now. Any exception when it cannot be had; ValueError when it has no keys."""
    from jwt import PyJWK

    request = urllib.request.Request(settings.url, headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=settings.timeout) as answer:
        text = answer.read(LARGEST_SET + 1)
    if len(text) > LARGEST_SET:
        raise ValueError(f"the answer is longer than {LARGEST_SET} bytes")
    try:
        entries = json.loads(text)["keys"]
    except (ValueError, KeyError, TypeError):
        raise ValueError("the answer is no JWK set") from None
    if not isinstance(entries, list):
        raise ValueError("the answer is no JWK set")
    keys: dict[str, PyJWK] = {}
    unusable: set[tuple[str, str]] = set()
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get("kty") == "oct" or entry.get("use", "sig") != "sig":
            continue  # A shared secret, or a key to encrypt with.
        key_id = str(entry.get("kid", number))
        try:
            keys[key_id] = PyJWK(entry)
        except Exception:  # PyJWT lets through whatever its libraries raise for a key they do not take.
            unusable.add((key_id[:100], str(entry.get("kty"))[:100]))
    if not keys:
        shown = ", ".join(f"{key_id!r} of type {kind}" for key_id, kind in sorted(unusable)[:5])
        raise ValueError(
            "the answer has no key to verify signatures with" + (f"; {shown} cannot be used" if shown else "")
        )
    return LoadedKeys(keys, frozenset(unusable))

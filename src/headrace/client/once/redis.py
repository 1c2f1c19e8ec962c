"""Ids in Redis: every step is one atomic script, every id expires.

As sure as Redis's memory: what it forgets (a restart without its append-only file, a failover to a replica
that was behind, eviction, the expiry) can be handled a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.client.errors import require
from headrace.client.once.ids import fitted
from headrace.client.once.store import Claim, StoreUnavailable

if TYPE_CHECKING:
    from redis import Redis

T = TypeVar("T")
log = logging.getLogger("headrace.client.once")

# The value is "c" (claimed) or "d" (done) followed by the holder's token.
_CLAIM = """
local held = redis.call('GET', KEYS[1])
if not held or held == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return {'ours', 0}
end
if string.sub(held, 1, 1) == 'd' then return {'done', 0} end
return {'running', redis.call('PTTL', KEYS[1])}
"""
_DONE = """
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 2) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], 'd' .. ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = """
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 2) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class RedisStore:
    """``expiry`` seconds must be longer than a record can take to come again, replays included.

    >>> Once("billing", RedisStore(Redis()))
    """

    def __init__(self, client: Redis, *, expiry: float = 7 * 86_400, prefix: str = "headrace:once:") -> None:
        self._exceptions: Any = require("redis.exceptions", "redis", "RedisStore")
        self._redis: Any = client
        self._expiry = int(expiry * 1000)
        self._prefix = prefix.encode()
        self._claim = self._redis.register_script(_CLAIM)
        self._done = self._redis.register_script(_DONE)
        self._release = self._redis.register_script(_RELEASE)

    def claim(self, name: str, identity: bytes, token: str, lease: float | None) -> Claim:
        expiry = self._expiry if lease is None else max(1, int(lease * 1000))
        key = self._key(name, identity)
        state, left = self._ask(lambda: self._claim(keys=[key], args=["c" + token, expiry]))
        return Claim(_text(state), max(0, left) / 1000)

    def done(self, name: str, identity: bytes, token: str) -> bool:
        key = self._key(name, identity)
        return bool(self._ask(lambda: self._done(keys=[key], args=[token, self._expiry])))

    def release(self, name: str, identity: bytes, token: str) -> None:
        self._ask(lambda: self._release(keys=[self._key(name, identity)], args=[token]))

    def remembers(self, name: str, identity: bytes) -> bool:
        """Whether the id is known to be done; used as the front of a LayeredStore."""
        held = self._ask(lambda: self._redis.get(self._key(name, identity)))
        return held is not None and _text(held).startswith("d")

    def remember(self, name: str, identity: bytes) -> None:
        self._ask(lambda: self._redis.set(self._key(name, identity), b"d", px=self._expiry))

    def _key(self, name: str, identity: bytes) -> bytes:
        # A colon in the name must not look like the one after it: "a:b" and "c" are not "a" and "b:c".
        escaped = name.replace("%", "%25").replace(":", "%3A")
        return self._prefix + fitted(escaped.encode()) + b":" + fitted(identity)

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (self._exceptions.ConnectionError, self._exceptions.TimeoutError, OSError) as error:
            raise StoreUnavailable(f"Redis does not answer ({error}); the record waits") from error
        except self._exceptions.ResponseError as error:
            # Such as a full memory with noeviction, or a replica that has lost its master.
            raise StoreUnavailable(f"Redis refuses ({error}); the record waits") from error


def _text(answer: bytes | str) -> Any:
    """A client made with decode_responses=True gives str."""
    return answer.decode() if isinstance(answer, bytes) else answer

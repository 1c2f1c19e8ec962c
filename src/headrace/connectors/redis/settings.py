"""What the Redis source and sink share: the connection and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from headrace.connectors.errors import ConnectorError, Unavailable

Client = Any  # redis-py types every answer as sync-or-async; what is asked here is always sync


def connect(url: str, side: str) -> Client:
    try:
        return redis.Redis.from_url(url, socket_timeout=30, socket_connect_timeout=10)
    except ValueError as error:
        raise ConnectorError(f"{side}.url is not a Redis URL ({error}): write redis://host:6379/0") from None


@contextmanager
def reachable(url: str) -> Iterator[None]:
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError, redis.ReadOnlyError) as error:
        where = url.rpartition("@")[2]
        raise Unavailable(f"Redis at {where} does not answer: {error}") from error

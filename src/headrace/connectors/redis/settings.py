"""What the Redis source and sink share: the connection and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.exceptions import AuthorizationError

from headrace.connectors.errors import ConnectorError, Unavailable, one_line

Client = Any  # redis-py types every answer as sync-or-async; what is asked here is always sync


def connect(url: str, side: str) -> Client:
    try:
        client = redis.Redis.from_url(url, socket_timeout=30, socket_connect_timeout=10)
        client.connection_pool.make_connection()  # opens nothing, and finds options that there are not
    except (ValueError, TypeError) as error:
        raise ConnectorError(f"{side}.url is not a Redis URL ({error}): write redis://host:6379/0") from None
    return client


@contextmanager
def reachable(url: str) -> Iterator[None]:
    """A server that is away is worth another try; one that refuses is not."""
    where = url.partition("?")[0].partition("://")[2].rpartition("@")[2]  # without passwords
    try:
        yield
    except (redis.AuthenticationError, AuthorizationError) as error:
        raise ConnectorError(
            f"Redis at {where} refused the login ({one_line(error)}): check user and password in the url"
        ) from error
    except (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError, redis.ReadOnlyError) as error:
        raise Unavailable(f"Redis at {where} does not answer: {one_line(error)}") from error
    except redis.ResponseError as error:
        raise ConnectorError(f"Redis at {where} refused what was asked: {one_line(error)}") from error

"""``Once``: a handler that has its effect once for each id, however often the record comes.

claim the id → run the handler → mark it done. A handler that raises releases the id. Between effect and
mark no store can help a process that dies: ``on_crash`` says whether the record is then repeated or
skipped. To close that gap, put the effect into the same database transaction (SqlOnce).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, TypeVar, overload

from headrace.client.errors import ConfigError
from headrace.client.handlers import check_done, is_async
from headrace.client.once.ids import IdOf, from_header
from headrace.client.once.store import AlreadyRunning, Store, StoreUnavailable, telling
from headrace.client.record import Record
from headrace.client.to_the_end import to_the_end

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
log = logging.getLogger("headrace.client.once")
_LONGEST_WAIT = 1.0
_BETWEEN_TRIES = 0.1


class _Held(NamedTuple):
    """A claim of ours. The id is kept: a handler may change the value it was read from."""

    record: Record[Any, Any]
    identity: bytes
    token: str


class Once:
    """A decorator for handlers, sync or async.

    >>> once = Once("billing", RedisStore(redis), id=from_fields("transfer_id", "account_id"))
    >>> @once
    ... def handle(record): ...

    ``name`` keeps apart handlers that share a store; it must not change while records may come again.
    ``lease`` must be longer than the handler ever takes: after that many seconds its holder counts as dead.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        id: IdOf | None = None,
        on_crash: Literal["repeat", "skip"] = "repeat",
        lease: float = 60.0,
    ) -> None:
        if on_crash not in ("repeat", "skip"):
            raise ConfigError(f'on_crash is {on_crash!r}: choose "repeat" or "skip"')
        if lease <= 0:
            raise ConfigError("lease must be more than 0 seconds")
        self._name = name
        self._store = store
        self._id_of = id or from_header()
        self._lease = None if on_crash == "skip" else lease
        self._unanswered: dict[bytes, str] = {}

    @overload
    def __call__(
        self, handler: Callable[[Record[K, V]], Awaitable[R]]
    ) -> Callable[[Record[K, V]], Awaitable[R | None]]: ...
    @overload
    def __call__(self, handler: Callable[[Record[K, V]], R]) -> Callable[[Record[K, V]], R | None]: ...
    def __call__(self, handler: Callable[[Record[Any, Any]], Any]) -> Callable[[Record[Any, Any]], Any]:
        if is_async(handler):
            return self._around_coroutine(handler)

        @functools.wraps(handler)
        def handle(record: Record[Any, Any]) -> Any:
            claim = self._begin(record)
            if claim is None:
                return None
            try:
                result = handler(record)
                check_done(result, "a handler inside once")
            except BaseException:
                self._undo(claim)
                raise
            self._end(claim)
            return result

        return handle

    def _around_coroutine(
        self, handler: Callable[[Record[Any, Any]], Awaitable[R]]
    ) -> Callable[[Record[Any, Any]], Awaitable[R | None]]:
        @functools.wraps(handler)
        async def handle(record: Record[Any, Any]) -> R | None:
            beginning = asyncio.ensure_future(asyncio.to_thread(self._begin, record))
            try:
                claim = await to_the_end(beginning)
            except asyncio.CancelledError:
                # The claim may be there all the same, and only we would give it back.
                if not beginning.cancelled() and beginning.exception() is None:
                    await self._in_thread(self._undo, beginning.result())
                raise
            if claim is None:
                return None
            try:
                result = await handler(record)
            except BaseException:
                await self._in_thread(self._undo, claim)
                raise
            await self._in_thread(self._end, claim)
            return result

        return handle

    async def _in_thread(self, step: Callable[[_Held], None], claim: _Held | None) -> None:
        if claim is not None:
            await to_the_end(asyncio.to_thread(step, claim))

    @telling()
    def _begin(self, record: Record[Any, Any]) -> _Held | None:
        """Our claim; None when the record has been handled already."""
        identity = self._id_of(record)
        # A claim whose answer was lost may be there: asked for again under its token, it is ours.
        token = self._unanswered.pop(identity, None) or uuid.uuid4().hex
        try:
            claim = self._store.claim(self._name, identity, token, self._lease)
        except StoreUnavailable:
            self._unanswered[identity] = token
            raise
        if claim.state == "done" or (claim.state == "running" and self._lease is None):
            log.debug("%s was handled before and is skipped", record)
            return None
        if claim.state == "running":
            wait = min(max(claim.left, 0.05), _LONGEST_WAIT)
            raise AlreadyRunning(f"{record} is being handled elsewhere; it is looked at again later", wait)
        return _Held(record, identity, token)

    def _end(self, held: _Held) -> None:
        """Mark it done, trying for as long as the claim lasts: the effect is there already."""
        deadline = time.monotonic() + (self._lease or 0)
        while True:
            try:
                kept = self._store.done(self._name, held.identity, held.token)
                break
            except StoreUnavailable as away:
                if self._lease is None:
                    return  # the claim alone keeps others away
                if time.monotonic() + _BETWEEN_TRIES > deadline:
                    log.error(
                        "%s was handled but could not be marked: %s; it may be repeated", held.record, away
                    )
                    raise
                time.sleep(_BETWEEN_TRIES)
        if not kept:
            log.error(
                "%s took longer than its lease and may have been handled twice: raise the lease", held.record
            )

    def _undo(self, held: _Held) -> None:
        try:
            self._store.release(self._name, held.identity, held.token)
        except StoreUnavailable as away:
            log.warning("%s: the claim on %s stays until its lease runs out", away, held.record)

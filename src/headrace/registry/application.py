"""The ASGI application: reads a request, has it answered, and writes the answer. Schemas by their id, which is nearly all that clients ask
for once they run, are answered from bytes that were encoded before."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from headrace.registry import names
from headrace.registry.errors import RegistryError, no_writer, too_large
from headrace.registry.forwarding import FORWARDED, OFFSET, Forwarding, Unreachable
from headrace.registry.http_forms import CONTENT_TYPE, LARGEST_BODY, Query, encode, schema_reply
from headrace.registry.instance import Running
from headrace.registry.routes import Asked, Change, May, Routes, Text, everything
from headrace.registry.security import Gate
from headrace.registry.settings import SettingError

log = logging.getLogger("headrace.registry")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_BY_ID = b"/schemas/ids/"
_FULL = b"confluent-accept-unknown-properties"
_CACHED = 20_000
_CATCHING_UP = 5.0


class Application:
    def __init__(self, running: Running, forwarding: Forwarding, gate: Gate | None = None) -> None:
        self._gate = gate
        """Without one nobody has to log in."""
        self._running = running
        self._state = running.state
        self._routes = Routes(running)
        self._forwarding = forwarding
        self._encoded: dict[tuple[int, bool], tuple[bytes, list[Message]]] = {}
        """By id, and whether the reply is full: the digest, and the two messages of the answer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: bytes = scope["raw_path"]
        quick = path.startswith(_BY_ID) and scope["method"] == "GET" and not scope["query_string"]
        if quick and self._gate is None:
            messages = self._quick(path[len(_BY_ID) :], scope["headers"])
            if messages is not None:
                for message in messages:
                    await send(message)
                return
        status, headers, body = await self._answer(scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _quick(self, number: bytes, headers: Headers) -> list[Message] | None:
        """The answer to a question for a schema of the default context; None for what needs a closer look."""
        if not number.isdigit() or len(number) > 10:
            return None
        found = self._state.by_id(names.DEFAULT_CONTEXT, int(number))
        if not found:
            return None
        full, match = False, None
        for name, value in headers:
            if name == _FULL:
                full = value == b"true"
            elif name == b"if-none-match":
                match = value
        entry = found[0]
        key = entry.id, full
        kept = self._encoded.get(key)
        if kept is None or kept[0] != entry.digest:
            body = encode(schema_reply(entry, full=full, named=False))
            kept = self._encoded[key] = entry.digest, _messages(200, body, entry.guid)
            if len(self._encoded) > _CACHED:
                del self._encoded[next(iter(self._encoded))]
        if match is not None and match.strip(b'W/"') == entry.guid.encode():
            return _messages(304, b"", entry.guid)
        return kept[1]

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Headers, bytes]:
        method, raw, incoming = scope["method"], scope["raw_path"], scope["headers"]
        try:
            may = self._admit(incoming)
            body = await _read(receive)
            reply = await self._reply(method, raw, scope["query_string"], incoming, body, may)
        except RegistryError as error:
            status, headers, told = _refusal(error)
            if status == 401 and self._gate is not None:
                headers.append((b"www-authenticate", self._gate.challenge()))
            return status, headers, told
        except Exception:
            log.exception("%s %s failed", method, raw.decode("latin-1"))
            return _refusal(RegistryError(500, "Internal Server Error: see the registry's log"))
        return reply

    def _admit(self, headers: Headers) -> May:
        """What the user may do. RegistryError for an unknown user."""
        gate = self._gate
        if gate is None:
            return everything
        try:
            gate.refresh()
        except SettingError as error:  # what was read before still counts
            log.error("%s", error)
        user = gate.who(headers)
        return functools.partial(gate.may, user) if gate.judges else everything

    async def _reply(
        self, method: str, raw: bytes, query: bytes, incoming: Headers, body: bytes, may: May
    ) -> tuple[int, Headers, bytes]:
        given = dict(incoming)
        path = [unquote(part) for part in raw.decode("latin-1").strip("/").split("/")]
        asked = Asked(method, path, Query(query), body, full=given.get(_FULL) == b"true", may=may)
        found = await self._routes.answer(asked)
        headers: Headers = []
        if isinstance(found, Change):
            if not self._running.writes:
                target = raw + (b"?" + query if query else b"")
                return await self._pass_on(found, method, target.decode("latin-1"), given, incoming, body)
            found = await self._running.change(found.operation, found.scope, found.doing)
            if isinstance(found, functools.partial):
                found = await found() if inspect.iscoroutinefunction(found.func) else found()
            headers.append((OFFSET.encode(), str(self._state.end).encode()))
            if found is None:
                return 204, headers, b""
        data = found.encode() if isinstance(found, Text) else encode(found)
        return 200, [*headers, *_described(data)], data

    async def _pass_on(
        self,
        change: Change,
        method: str,
        target: str,
        given: dict[bytes, bytes],
        incoming: Headers,
        body: bytes,
    ) -> tuple[int, Headers, bytes]:
        leader = self._running.leader
        if leader is None or FORWARDED in given:
            raise no_writer(change.doing, "the leader is unknown")
        try:
            answer = await self._forwarding.pass_on(leader, method, target, incoming, body)
        except Unreachable as error:
            raise no_writer(change.doing, str(error)) from None
        if answer.offset is not None:
            # The next request to this instance must see the change.
            try:
                await asyncio.wait_for(self._running.following.applied(answer.offset - 1), _CATCHING_UP)
            except TimeoutError:
                log.warning("this instance is behind: it has not read what it passed on")
        return answer.status, _described(answer.body) if answer.body else [], answer.body


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RegistryError(400, "The request ended before its body did")
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise too_large()
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _described(body: bytes) -> Headers:
    return [(b"content-type", CONTENT_TYPE), (b"content-length", str(len(body)).encode())]


def _messages(status: int, body: bytes, guid: str) -> list[Message]:
    headers = [(b"etag", f'"{guid}"'.encode()), (b"cache-control", b"no-cache")]
    headers += _described(body) if status != 304 else []
    return [
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": body},
    ]


def _refusal(error: RegistryError) -> tuple[int, Headers, bytes]:
    body = encode({"error_code": error.code, "message": error.message})
    return error.status, _described(body), body

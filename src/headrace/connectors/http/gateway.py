"""An ASGI application that takes records in: a 2xx answer means that every in-sync replica has them.

What it holds is bounded. Beyond that it answers 429, and 503 while the cluster does not acknowledge, both with Retry-After,
and it never keeps a request it cannot finish.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from headrace.client import AsyncProducer, BrokerError, BufferFull, ClientError, RecordMetadata
from headrace.connectors.http.records import BadRequest, Incoming, read

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DEDUPLICATION_HEADER = "headrace.id"
_JSON = (b"content-type", b"application/json")


@dataclass(slots=True)
class GatewayLimits:
    """What the gateway may hold at a time, and how large one request may be."""

    records: int = 20_000
    bytes: int = 64 << 20
    body: int = 1 << 20
    retry_after: int = 1


@dataclass(slots=True)
class Counts:
    accepted: int = 0
    """Records acknowledged by the cluster."""
    refused: int = 0
    """Requests turned away because the gateway was full."""
    failed: int = 0
    """Requests that the cluster did not acknowledge."""
    records: int = 0
    """Records waiting for their acknowledgement now."""
    bytes: int = 0


class Gateway:
    """``POST /`` writes to the first topic, ``POST /topics/<name>`` to one of them, ``GET /health`` counts.

    Runs under any ASGI server; the producer lives from the server's start-up to its shutdown.
    """

    def __init__(
        self,
        connection: Mapping[str, object],
        topics: Collection[str],
        *,
        key: tuple[str, ...] = (),
        key_header: str = "headrace-key",
        copy_headers: Collection[str] = (),
        token: str | None = None,
        limits: GatewayLimits | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.counts = Counts()
        self.failure: str | None = None
        """Why it could not start."""
        self._topics = list(topics)
        self._key = key
        self._key_header = key_header.lower().encode()
        self._copied = [(name.lower().encode(), name) for name in copy_headers]
        self._token = token
        self._limits = limits or GatewayLimits()
        milliseconds = int(timeout * 1000)
        self._settings = {
            **connection,
            "acks": "all",
            "delivery.timeout.ms": milliseconds,
            "request.timeout.ms": milliseconds,
            "linger.ms": 2,
        }
        self._producer: AsyncProducer[bytes, bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            event = (await receive())["type"]
            if event == "lifespan.startup":
                try:
                    self._producer = AsyncProducer(self._settings)
                except ClientError as error:
                    self.failure = str(error)
                    await send({"type": "lifespan.startup.failed", "message": self.failure})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif event == "lifespan.shutdown":
                if self._producer is not None:
                    await self._producer.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        try:
            if scope["method"] in ("GET", "HEAD") and scope["path"] == "/health":
                await _reply(send, 200, {"status": "ok", **_shown(self.counts)})
                return
            topic = self._topic(scope["method"], scope["path"])
            self._authorize(headers)
            if self._is_full():
                raise _Full
            await self._take(topic, headers, receive, send)
        except BadRequest as error:
            await _reply(send, error.status, {"error": str(error)}, close=error.status == 413)
        except _Full:
            self.counts.refused += 1
            await self._try_later(send, 429, "too much is waiting for the cluster: try again later")
        except _SenderLeft:
            return

    async def _take(self, topic: str, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        held = _Held(self.counts)
        try:
            body = await self._body(headers, receive, held)
            records = read(
                body,
                headers.get(b"content-type", b"").decode("latin-1"),
                self._key,
                headers.get(self._key_header),
            )
            held.records(len(records))
            if self.counts.records > max(self._limits.records, len(records)):
                raise _Full
            try:
                written = await self._write(topic, records, headers)
            except (BrokerError, BufferFull) as error:
                if isinstance(error, BrokerError) and error.code == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise BadRequest(str(error), 413) from None  # to come again would not help
                self.counts.failed += 1
                await self._try_later(send, 503, str(error))
                return
        finally:
            held.release()
        self.counts.accepted += len(records)
        offsets: dict[str, int] = {}
        for metadata in written:
            partition = str(metadata.partition)
            offsets[partition] = max(metadata.offset, offsets.get(partition, -1))
        await _reply(send, 200, {"topic": topic, "records": len(records), "offsets": offsets})

    async def _write(
        self, topic: str, records: list[Incoming], headers: dict[bytes, bytes]
    ) -> list[RecordMetadata]:
        assert self._producer is not None, "the server must run the application's lifespan"
        copied = [(name, headers[low]) for low, name in self._copied if low in headers]
        identity = headers.get(b"idempotency-key")
        futures = []
        for number, record in enumerate(records):
            own = (
                []
                if identity is None
                else [(DEDUPLICATION_HEADER, _numbered(identity, number, len(records)))]
            )
            futures.append(
                await self._producer.send(topic, record.value, key=record.key, headers=[*copied, *own])
            )
        if len(futures) == 1:
            return [await futures[0]]
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]

    async def _body(self, headers: dict[bytes, bytes], receive: Receive, held: _Held) -> bytes:
        limit = self._limits.body
        announced = headers.get(b"content-length", b"")
        if announced.isdigit() and int(announced) > limit:
            raise BadRequest(f"the body has {int(announced)} bytes and may have {limit}", 413)
        parts = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _SenderLeft
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            held.bytes(len(part))
            if self.counts.bytes > self._limits.bytes + limit:
                raise _Full
            if size > limit:
                raise BadRequest(f"the body has more than {limit} bytes", 413)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _topic(self, method: str, path: str) -> str:
        name = self._topics[0] if path == "/" else path.removeprefix("/topics/")
        if name not in self._topics:
            raise BadRequest(f"there is nothing at {path}: post to / or to /topics/{self._topics[0]}", 404)
        if method != "POST":
            raise BadRequest(f"{method} is not for this: use POST", 405)
        return name

    def _authorize(self, headers: dict[bytes, bytes]) -> None:
        given = headers.get(b"authorization", b"")
        if self._token is not None and not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            raise BadRequest("the bearer token is missing or wrong", 401)

    def _is_full(self) -> bool:
        return self.counts.records >= self._limits.records or self.counts.bytes >= self._limits.bytes

    async def _try_later(self, send: Send, status: int, sentence: str) -> None:
        wait = (b"retry-after", str(self._limits.retry_after).encode())
        await _reply(send, status, {"error": sentence}, wait)


class _Full(Exception):
    """What the gateway holds has reached its limit."""


class _SenderLeft(Exception):
    """The client left before its whole request arrived: there is nothing to write and no one to answer."""


class _Held:
    """What one request adds to the counts; given back whatever happens to it."""

    __slots__ = ("_bytes", "_counts", "_records")

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._bytes = 0
        self._records = 0

    def bytes(self, number: int) -> None:
        self._bytes += number
        self._counts.bytes += number

    def records(self, number: int) -> None:
        self._records += number
        self._counts.records += number

    def release(self) -> None:
        self._counts.bytes -= self._bytes
        self._counts.records -= self._records


def _shown(counts: Counts) -> dict[str, int]:
    return {
        "accepted": counts.accepted,
        "refused": counts.refused,
        "failed": counts.failed,
        "waiting": counts.records,
    }


def _numbered(identity: bytes, number: int, count: int) -> bytes:
    return identity if count == 1 else identity + b"/" + str(number).encode()


async def _reply(
    send: Send, status: int, document: object, *more: tuple[bytes, bytes], close: bool = False
) -> None:
    body = json.dumps(document, ensure_ascii=False).encode() + b"\n"
    headers = [_JSON, (b"content-length", str(len(body)).encode()), *more]
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

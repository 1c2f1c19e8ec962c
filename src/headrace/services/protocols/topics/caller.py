"""The consumer's end of headrace://: writes requests, waits for their replies.

A call has an id (one of its own, or the caller's `headrace.id` attachment). Its request stays in the log until a
provider serves it, however long that takes: a call that gave up waiting can be made again under the same id and is
answered from what was done then.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from collections.abc import Awaitable, Callable

from headrace.client import Admin, AsyncConsumer, AsyncProducer, ClientError
from headrace.services.errors import RpcCode, RpcException
from headrace.services.hessian2 import Hessian2Error
from headrace.services.interface import InterfaceModel
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.frame import HEADER_SIZE, Status
from headrace.services.protocols.topics import names
from headrace.services.protocols.topics.provider import ensure_topic
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.topics")

_POLL_SECONDS = 0.5
_PAUSE_SECONDS = 1.0
_ATTACHED = ("interface", "group", "token", "timeout")


class Mailbox:
    """One application's replies: reads its reply topic and hands each reply to the call that waits for it."""

    def __init__(self, url: URL, application: str) -> None:
        self._url = url
        self.topic = names.reply_topic(application)
        self.references = 0
        self.producer: AsyncProducer[str, bytes] | None = None
        self._consumer: AsyncConsumer[bytes, bytes] | None = None
        self._waiting: dict[str, asyncio.Future[tuple[Status, bytes]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Go to the end of the reply topic before the first request is written."""
        await asyncio.to_thread(ensure_topic, self._url, self.topic, names.DEFAULT_PARTITIONS)
        settings = names.client_settings(self._url)
        self.producer = AsyncProducer(settings)
        self._consumer = AsyncConsumer(settings)
        with Admin(settings) as admin:
            ends = await asyncio.to_thread(lambda: admin.offsets("latest", admin.partitions_of(self.topic)))
        await self._consumer.assign(ends)
        self._task = asyncio.get_running_loop().create_task(self._read(self._consumer))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._consumer is not None:
            await self._consumer.close(handled=False)
        if self.producer is not None:
            await self.producer.close()

    def expect(self, call_id: str) -> asyncio.Future[tuple[Status, bytes]]:
        """The reply to come; two calls under one id share it."""
        if call_id not in self._waiting:
            self._waiting[call_id] = asyncio.get_running_loop().create_future()
        return self._waiting[call_id]

    def give_up(self, call_id: str) -> None:
        self._waiting.pop(call_id, None)

    async def _read(self, consumer: AsyncConsumer[bytes, bytes]) -> None:
        while True:
            try:
                for record in await consumer.poll(_POLL_SECONDS):
                    future = self._waiting.pop(names.header(record.headers, names.ID), None)
                    if future is not None and not future.done():
                        status = names.header(record.headers, names.STATUS)
                        number = int(status) if status.isdecimal() else int(Status.CLIENT_ERROR)
                        known = (
                            Status(number) if number in Status.__members__.values() else Status.CLIENT_ERROR
                        )
                        future.set_result((known, record.value or b""))
            except ClientError as error:
                logger.error("Reading replies from %s failed, trying on: %s", self.topic, error)
                await asyncio.sleep(_PAUSE_SECONDS)


class TopicsInvoker(Invoker):
    """Calls a service through its topic."""

    def __init__(
        self, interface: InterfaceModel, url: URL, mailbox: Mailbox, release: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(interface, url)
        self._mailbox = mailbox
        self._release = release
        self._topic = names.request_topic(url)
        self._version = url.get("version", "0.0.0")
        self._attached = {key: url.get(key) for key in _ATTACHED if url.get(key)}
        self._attached |= {"path": url.path, "version": self._version}
        self._own = itertools.count()
        self._origin = uuid.uuid4().hex
        self._destroyed = False

    @property
    def is_available(self) -> bool:
        return not self._destroyed

    async def invoke(self, invocation: Invocation) -> Result:
        # Kept in the invocation: a cluster that tries again asks for the same call, not for another.
        call_id = str(invocation.attachments.setdefault(names.ID, f"{self._origin}-{next(self._own)}"))
        body = self._encode(invocation)
        headers = {names.ID: call_id}
        producer = self._mailbox.producer
        assert producer is not None
        if invocation.one_way:
            await self._send(producer, body, call_id, headers)
            return Result()
        headers[names.REPLY_TO] = self._mailbox.topic
        timeout_ms = self.url.method_int(invocation.method_name, "timeout", names.DEFAULT_TIMEOUT_MS)
        reply = self._mailbox.expect(call_id)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._send(producer, body, call_id, headers)
                status, answer = await asyncio.shield(reply)
        except TimeoutError:
            self._mailbox.give_up(call_id)
            raise RpcException(
                f"Invoke remote method timeout. method: {invocation.method_name}, no reply within {timeout_ms} ms; "
                f"the request stays in the topic {self._topic}: call again with the attachment "
                f"{names.ID}={call_id} for its reply",
                RpcCode.TIMEOUT,
            ) from None
        return self._read(invocation, status, answer)

    async def _send(
        self, producer: AsyncProducer[str, bytes], body: bytes, call_id: str, headers: dict[str, str]
    ) -> None:
        try:
            await producer.send_and_wait(self._topic, body, key=call_id, headers=headers)
        except ClientError as error:
            self._mailbox.give_up(call_id)
            raise RpcException(
                f"Failed to invoke remote method, the request could not be written to {self._topic}: {error}",
                RpcCode.NETWORK,
            ) from None

    def _encode(self, invocation: Invocation) -> bytes:
        prefix = codec.request_prefix(
            self.url.path, self._version, invocation.method_name, invocation.parameter_types
        )
        attachments = {**self._attached, **invocation.attachments}
        try:
            framed = codec.encode_request(0, 0, prefix, invocation.method, invocation.arguments, attachments)
        except Hessian2Error as error:
            raise RpcException(
                f"Failed to invoke remote method: {invocation.method_name}, cause: {error}",
                RpcCode.SERIALIZATION,
            ) from None
        return bytes(framed[HEADER_SIZE:])

    def _read(self, invocation: Invocation, status: Status, body: bytes) -> Result:
        try:
            if status == Status.OK:
                return codec.decode_result(body)
            message = codec.decode_error(body)
        except Hessian2Error as error:
            message = f"Decode response failed: {error}"
        raise RpcException(
            f"Failed to invoke remote method: {invocation.method_name}, provider: {self.url}, cause: {message}",
            RpcCode.NETWORK,
            reason=message,
        )

    async def destroy(self) -> None:
        if not self._destroyed:
            self._destroyed = True
            await self._release()

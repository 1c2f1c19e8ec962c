"""The provider's end of headrace://: takes requests from the service's topic, answers where they ask for it.

An offset is committed only when the replies of everything before it are written, so a request is served at least
once. Replies of the last 10,000 calls are remembered by id: a request that comes again, from a caller that tried
twice or after a rebalance, is answered without being made again. After a restart that memory is gone, which is why
the id is the implementation's too (`current().attachments["headrace.id"]`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from headrace.client import Admin, AsyncConsumer, AsyncProducer, ClientError, Record
from headrace.services.errors import RpcException, ServicesError
from headrace.services.hessian2 import Hessian2Error, encode
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter, ProtocolRuntime
from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.frame import HEADER_SIZE, Status
from headrace.services.protocols.topics import names
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.topics")

MAX_REMEMBERED = 10_000
DEFAULT_CONNECT_MS = 10_000
_POLL_SECONDS = 0.5
_PAUSE_SECONDS = 1.0

Reply = tuple[bytes, Status]


class TopicsExporter(Exporter):
    """One service, served from its topic."""

    def __init__(
        self, invoker: Invoker, runtime: ProtocolRuntime, forget: Callable[[TopicsExporter], None]
    ) -> None:
        super().__init__(invoker)
        self._runtime = runtime
        self._servers = names.bootstrap_servers(invoker.url)
        self._topic = names.request_topic(invoker.url)
        self._decoder = codec.RequestDecoder()
        # By call id, a reply made or being made: a repeated request waits for the first one's.
        self._remembered: OrderedDict[str, asyncio.Future[Reply]] = OrderedDict()
        self._producer: AsyncProducer[str, bytes] | None = None
        self._consumer: AsyncConsumer[bytes, bytes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._forget = forget

    async def start(self) -> None:
        """Make the topic if need be and begin to serve."""
        url = self.invoker.url
        if url.get_bool("anyhost", False) and not url.get("bootstrap.servers"):
            raise ServicesError("protocol headrace: host is missing, give the address of a broker")
        partitions = url.get_int("partitions", names.DEFAULT_PARTITIONS)
        try:
            await asyncio.to_thread(ensure_topic, self.invoker.url, self._topic, partitions)
            settings = names.client_settings(url)
            self._producer = AsyncProducer(settings)
            self._consumer = AsyncConsumer(
                settings,
                group_id=names.group_id(self.invoker.url),
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
            await self._consumer.subscribe(self._topic)
        except ClientError as error:
            raise ServicesError(
                f"the service {self.invoker.interface.name} cannot be served: {error}"
            ) from None
        self._task = asyncio.get_running_loop().create_task(self._serve(self._consumer))

    async def unexport(self) -> None:
        """Answer and commit what is being served, for as long as a shutdown may take, and take no more."""
        self._forget(self)
        if self._task is not None:
            task, self._task = self._task, None
            self._stopping = True
            await asyncio.wait([task], timeout=self._runtime.shutdown_wait_ms / 1000)
            task.cancel()
            await asyncio.wait([task])
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            await consumer.close(handled=False)
        if self._producer is not None:
            producer, self._producer = self._producer, None
            await producer.close()

    # -- serving -----------------------------------------------------------------------------------------

    async def _serve(self, consumer: AsyncConsumer[bytes, bytes]) -> None:
        while not self._stopping:
            try:
                records = await consumer.poll(_POLL_SECONDS)
                if records and not self._stopping:  # else the next consumer of the partition gets them
                    await self._handle_all(records)
                    await consumer.commit(records)
            except ClientError as error:
                # Uncommitted requests are served again, by us or by the new owner of the partition.
                logger.error("Serving %s from %s failed, trying on: %s", self._topic, self._servers, error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _handle_all(self, records: list[Record[bytes, bytes]]) -> None:
        """Serve a batch until every reply is written; calls do not wait for each other."""
        while True:
            try:
                await asyncio.gather(*(self._handle(record) for record in records))
                return
            except ClientError as error:
                logger.error("A reply could not be written, trying on: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _handle(self, record: Record[bytes, bytes]) -> None:
        call_id = names.header(record.headers, names.ID)
        reply_to = names.header(record.headers, names.REPLY_TO)
        made = self._remembered.get(call_id)
        if made is None:
            made = asyncio.ensure_future(self._call(record, call_id, one_way=not reply_to))
            if call_id:
                self._remembered[call_id] = made
                if len(self._remembered) > MAX_REMEMBERED:
                    self._remembered.popitem(last=False)
        body, status = await asyncio.shield(made)
        if status == Status.SERVICE_ERROR and self._remembered.get(call_id) is made:
            del self._remembered[call_id]  # the call was refused, not made: asked again, it may be
        if not reply_to or self._producer is None:
            return
        headers = {names.ID: call_id, names.STATUS: str(int(status))}
        await self._producer.send_and_wait(reply_to, body, key=call_id, headers=headers)

    async def _call(self, record: Record[bytes, bytes], call_id: str, *, one_way: bool) -> Reply:
        try:
            route, arguments, attachments = self._decoder.decode(record.value or b"")
        except Hessian2Error as error:
            logger.warning(
                "The request at %s-%d@%d cannot be read: %s",
                record.topic,
                record.partition,
                record.offset,
                error,
            )
            return encode(f"Fail to decode request due to: {error}"), Status.BAD_REQUEST
        attachments[names.ID] = call_id
        place = f"{record.topic}-{record.partition}@{record.offset}"
        invocation = Invocation(
            route.method_name,
            route.parameter_types,
            arguments,
            attachments,
            one_way=one_way,
            remote_address=place,
            local_address=self._servers,
        )
        try:
            result = await self.invoker.invoke(invocation)
        except ServicesError as error:
            prefix = "org.apache.dubbo.rpc.RpcException: " if isinstance(error, RpcException) else ""
            return encode(f"{prefix}{error}"), Status.SERVICE_ERROR
        except Exception as error:
            logger.exception("The call of %s failed", invocation.method_name)
            return encode(f"{type(error).__name__}: {error}"), Status.SERVICE_ERROR
        return self._encode(invocation, result)

    def _encode(self, invocation: Invocation, result: Result) -> Reply:
        method = self.invoker.interface.methods.get(invocation.method_name)
        try:
            framed = codec.encode_result(0, result, method, True)
        except Hessian2Error as error:
            return encode(
                f"Failed to send response: {invocation.method_name}, cause: {error}"
            ), Status.BAD_RESPONSE
        return bytes(framed[HEADER_SIZE:]), Status.OK


def ensure_topic(url: URL, topic: str, partitions: int) -> None:
    """Make a topic if it is not there; says soon, not after a minute, when the cluster is not there either."""
    timeout = url.get_int("connect.timeout", DEFAULT_CONNECT_MS)
    with Admin(names.client_settings(url), default_api_timeout_ms=timeout) as admin:
        admin.create_topic(topic, partitions=partitions, exist_ok=True)

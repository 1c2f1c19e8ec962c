"""One consumer's connection to a provider: requests in, results out.

A call whose whole chain never waits is answered where it arrived; any other runs as a task. Whatever is wrong with
a request is answered with Dubbo's own status and message, and the connection goes on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.services.errors import RpcException, ServicesError
from headrace.services.hessian2 import Hessian2Error
from headrace.services.invocation import Attachments, Invocation, Result
from headrace.services.pool import PoolExhaustedError
from headrace.services.protocols.dubbo import codec, telnet
from headrace.services.protocols.dubbo.connection import Connection
from headrace.services.protocols.dubbo.frame import (
    EVENT,
    HESSIAN2,
    REQUEST,
    SERIALIZATION_MASK,
    TWO_WAY,
    Status,
)
from headrace.services.url import build_key

if TYPE_CHECKING:
    from headrace.services.invoker import Invoker
    from headrace.services.protocols.dubbo.server import DubboServer

logger = logging.getLogger("headrace.services.dubbo")

_MAX_KEYS = 64
_MAX_KEY_LENGTH = 1024
_MAX_MESSAGE = 8192


def exporter_key(path: str, version: str, group: str, port: int) -> str:
    """Under which name a call finds its service on a port."""
    return f"{build_key(path, group, '' if version == '0.0.0' else version)}:{port}"


class ServerConnection(Connection):
    """One consumer's connection."""

    def __init__(self, server: DubboServer) -> None:
        super().__init__(server.loop, server.payload)
        self._server = server
        self._typed = bytearray()
        self.running = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._server.closed(self)

    def pause_writing(self) -> None:
        """The consumer does not read its answers: take no more of its requests until it does."""
        self.pause_reading()

    def resume_writing(self) -> None:
        self.resume_reading()

    # -- frames ------------------------------------------------------------------------------------------

    def on_frame(self, flags: int, status: int, request_id: int, body: bytes) -> None:
        if flags & EVENT:
            self.on_event(flags, request_id, body)
            return
        if not flags & REQUEST:  # an answer, but we asked nothing
            return
        two_way = bool(flags & TWO_WAY)
        serialization = flags & SERIALIZATION_MASK
        if serialization != HESSIAN2:
            self._refuse(
                two_way,
                request_id,
                Status.BAD_REQUEST,
                "Fail to decode request due to: java.io.IOException: Unexpected serialization id:"
                f"{serialization} received from network, please check if the peer send the right id.",
            )
            return
        server = self._server
        try:
            route, arguments, attachments = server.decoder.decode(body)
        except Hessian2Error as error:
            logger.warning("Decode request from %s failed: %s", self.remote_address, error)
            message = f"Fail to decode request due to: java.io.IOException: {error}"
            self._refuse(two_way, request_id, Status.BAD_REQUEST, message)
            return
        key = self._key(route, attachments)
        invocation = Invocation(
            route.method_name,
            route.parameter_types,
            arguments,
            attachments,
            one_way=not two_way,
            remote_address=self.remote_address,
            local_address=self.local_address,
        )
        invoker = server.invokers.get(key)
        if invoker is None:
            self._refuse(two_way, request_id, Status.SERVICE_ERROR, self._not_found(key, invocation))
            return
        if invoker.suspends:
            self.running += 1
            server.spawn(self._serve(invoker, invocation, request_id, route.reply_attachments))
        else:
            self._serve_now(invoker, invocation, request_id, route.reply_attachments)

    def _key(self, route: codec.Route, attachments: Attachments) -> str:
        """Which export a request is for: the attachments say it, and where they do not, the request's beginning."""
        said = (
            _text(attachments.get("path")),
            _text(attachments.get("version")),
            _text(attachments.get("group")),
        )
        key = route.keys.get(said)
        if key is None:
            path, version, group = said
            key = exporter_key(path or route.path, version or route.version, group, self._server.port)
            if len(route.keys) < _MAX_KEYS and len(key) < _MAX_KEY_LENGTH:
                route.keys[said] = key
        return key

    def _serve_now(
        self, invoker: Invoker, invocation: Invocation, request_id: int, attachments: bool
    ) -> None:
        """Run a call that never waits to its end."""
        call = self._answer(invoker, invocation, request_id, attachments)
        try:
            call.send(None)
        except StopIteration:
            return
        call.close()
        raise RuntimeError(f"{invoker} waited although its chain says that it never does")

    async def _serve(
        self, invoker: Invoker, invocation: Invocation, request_id: int, attachments: bool
    ) -> None:
        try:
            await self._answer(invoker, invocation, request_id, attachments)
        finally:
            self.running -= 1

    async def _answer(
        self, invoker: Invoker, invocation: Invocation, request_id: int, attachments: bool
    ) -> None:
        status, message = Status.SERVICE_ERROR, ""
        try:
            result = await invoker.invoke(invocation)
        except PoolExhaustedError as error:
            host, _, port = self.local_address.rpartition(":")
            status = Status.SERVER_THREADPOOL_EXHAUSTED_ERROR
            message = f"Server side({host},{port}) threadpool is exhausted ,detail msg:{error}"
        except RpcException as error:
            message = f"org.apache.dubbo.rpc.RpcException: {error}"
        except ServicesError as error:
            message = str(error)
        except Exception as error:
            logger.exception("The call of %s failed", invocation.method_name)
            message = f"{type(error).__name__}: {error}"
        else:
            if not invocation.one_way:
                self._send_result(request_id, result, invoker, invocation, attachments)
            return
        self._refuse(not invocation.one_way, request_id, status, message)

    def _send_result(
        self, request_id: int, result: Result, invoker: Invoker, invocation: Invocation, attachments: bool
    ) -> None:
        method = invoker.interface.methods.get(invocation.method_name)
        try:
            reply: bytes | bytearray = codec.encode_result(request_id, result, method, attachments)
        except Hessian2Error as error:
            logger.warning("Fail to encode response of %s: %s", invocation.method_name, error)
            message = f"Failed to send response: {invocation.method_name}, cause: {error}"
            reply = codec.encode_error(request_id, Status.BAD_RESPONSE, message)
        else:
            if len(reply) > self.payload > 0:
                message = self.too_large_message(len(reply))
                logger.warning("%s", message)
                reply = codec.encode_error(request_id, Status.BAD_RESPONSE, message)
        self.send(reply)

    def _refuse(self, two_way: bool, request_id: int, status: Status, message: str) -> None:
        message = message[:_MAX_MESSAGE]  # it may quote what came, which may be long
        if two_way:
            self.send(codec.encode_error(request_id, status, message))
        else:
            logger.warning("A one-way call from %s was refused: %s", self.remote_address, message)

    def _not_found(self, key: str, invocation: Invocation) -> str:
        return (
            f"org.apache.dubbo.remoting.RemotingException: Not found exported service: {key} in "
            f"[{', '.join(self._server.invokers)}], may be version or group mismatch , channel: consumer: "
            f"/{self.remote_address} --> provider: /{self.local_address}, message:{invocation!r}"
        )

    def on_too_large(self, flags: int, request_id: int, length: int) -> None:
        message = self.too_large_message(length)
        logger.error("%s", message)
        if flags & REQUEST and not flags & EVENT:
            reason = f"Fail to decode request due to: java.io.IOException: {message}"
            self._refuse(bool(flags & TWO_WAY), request_id, Status.BAD_REQUEST, reason)

    def on_text(self, data: bytes) -> None:
        """Somebody types at the port."""
        self._typed += data
        if len(self._typed) > telnet.MAX_LINE:
            self.close()
            return
        while b"\n" in self._typed:
            line, _, rest = bytes(self._typed).partition(b"\n")
            self._typed = bytearray(rest)
            answer = telnet.answer(line.decode("utf-8", "replace").strip(), self._server)
            if answer is None:
                self.close()
                return
            self.send(answer.encode())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

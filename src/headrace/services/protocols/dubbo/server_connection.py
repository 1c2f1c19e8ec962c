"""One consumer's connection to a provider: requests in, results out.

A call through a chain that never waits is answered at once; any other runs as a task. Answers to requests that
arrived together leave together, at once; those of tasks once per turn of the loop. A bad request is answered with
Dubbo's own status and message, and the connection goes on.
"""

from __future__ import annotations

import asyncio
import logging

from headrace.services.errors import RpcException, ServicesError
from headrace.services.hessian2 import Hessian2Error
from headrace.services.invocation import Attachments, Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.pool import PoolExhaustedError
from headrace.services.protocols.dubbo import codec, telnet
from headrace.services.protocols.dubbo.connection import DubboConnection
from headrace.services.protocols.dubbo.frame import (
    EVENT,
    HESSIAN2,
    REQUEST,
    SERIALIZATION_MASK,
    TWO_WAY,
    Status,
)
from headrace.services.protocols.dubbo.port import Port
from headrace.services.url import build_key

logger = logging.getLogger("headrace.services.dubbo")

_CALL = REQUEST | TWO_WAY | HESSIAN2
_MAX_KEYS = 64
_MAX_KEY_LENGTH = 1024
_MAX_MESSAGE = 8192


def exporter_key(path: str, version: str, group: str, port: int) -> str:
    """Under which name a call finds its service on a port."""
    return f"{build_key(path, group, '' if version == '0.0.0' else version)}:{port}"


class ServerConnection(DubboConnection):
    """One consumer's connection."""

    def __init__(self, port: Port) -> None:
        super().__init__(port.loop, port.payload)
        self._port = port
        self._typed = bytearray()
        self._receiving = False
        self._answers: list[bytes | bytearray] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._port.opened(self)

    def data_received(self, data: bytes) -> None:
        self._receiving = True
        try:
            super().data_received(data)
        finally:
            self._receiving = False
            self._write_answers()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._port.closed(self)

    def pause_writing(self) -> None:
        """The consumer does not read its answers: take no more of its requests until it does."""
        self.pause_reading()

    def resume_writing(self) -> None:
        self.resume_reading()

    def send(self, data: bytes | bytearray) -> None:
        self._answers.append(data)
        if self._receiving:
            return
        if not self._port.calls:  # no other answer can come in this turn
            self._write_answers()
        elif len(self._answers) == 1:
            self.loop.call_soon(self._write_answers)

    def _write_answers(self) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            super().send(answers[0] if len(answers) == 1 else b"".join(answers))

    def close(self) -> None:
        self._write_answers()
        super().close()

    # -- frames ------------------------------------------------------------------------------------------

    def on_frame(self, flags: int, status: int, request_id: int, body: bytes) -> None:
        if flags | TWO_WAY != _CALL:
            self._on_other(flags, request_id, body)
            return
        two_way = bool(flags & TWO_WAY)
        port = self._port
        try:
            route, arguments, attachments = port.decoder.decode(body)
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
        invoker = port.invokers.get(key)
        if invoker is None:
            self._refuse(two_way, request_id, Status.SERVICE_ERROR, self._not_found(key, invocation))
            return
        call = self._serve(invoker, invocation, request_id, route.reply_attachments)
        if invoker.suspends:
            port.calls[invocation] = self.loop.create_task(call)
            return
        try:
            call.send(None)
        except StopIteration:
            return
        call.close()
        raise RuntimeError(f"{invoker} waited although its chain says that it never does")

    def _on_other(self, flags: int, request_id: int, body: bytes) -> None:
        """A frame that is no call in Hessian 2."""
        if flags & EVENT:
            self.on_event(flags, request_id, body)
        elif flags & REQUEST:
            self._refuse(
                bool(flags & TWO_WAY),
                request_id,
                Status.BAD_REQUEST,
                "Fail to decode request due to: java.io.IOException: Unexpected serialization id:"
                f"{flags & SERIALIZATION_MASK} received from network, please check if the peer send the right id.",
            )
        # Else it is an answer, but we asked nothing.

    def _key(self, route: codec.Route, attachments: Attachments) -> str:
        """Which export a request is for: the attachments say it, and where they do not, the request's beginning."""
        said = (attachments.get("path"), attachments.get("version"), attachments.get("group"))
        try:
            return route.keys[said]
        except (KeyError, TypeError):  # not met yet, or something that cannot be a key
            path, version, group = map(_text, said)
            key = exporter_key(path or route.path, version or route.version, group, self._port.number)
            plain = all(isinstance(each, str | None) for each in said)
            if plain and len(route.keys) < _MAX_KEYS and len(key) < _MAX_KEY_LENGTH:
                route.keys[said] = key
            return key

    async def _serve(
        self, invoker: Invoker, invocation: Invocation, request_id: int, attachments: bool
    ) -> None:
        try:
            try:
                result = await invoker.invoke(invocation)
            finally:
                self._port.calls.pop(invocation, None)
        except Exception as error:
            self._refuse(not invocation.one_way, request_id, *self._reason(error, invocation))
        else:
            if not invocation.one_way:
                self._send_result(request_id, result, invoker, invocation, attachments)

    def _reason(self, error: Exception, invocation: Invocation) -> tuple[Status, str]:
        """Why a call could not be made, as the consumer reads it."""
        if isinstance(error, PoolExhaustedError):
            host, _, port = self.local_address.rpartition(":")
            message = f"Server side({host},{port}) threadpool is exhausted ,detail msg:{error}"
            return Status.SERVER_THREADPOOL_EXHAUSTED_ERROR, message
        if isinstance(error, RpcException):
            return Status.SERVICE_ERROR, f"org.apache.dubbo.rpc.RpcException: {error}"
        if isinstance(error, ServicesError):
            return Status.SERVICE_ERROR, str(error)
        logger.error("The call of %s failed", invocation.method_name, exc_info=error)
        return Status.SERVICE_ERROR, f"{type(error).__name__}: {error}"

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
            f"[{', '.join(self._port.invokers)}], may be version or group mismatch , channel: consumer: "
            f"/{self.remote_address} --> provider: /{self.local_address}, message:{invocation!r}"
        )

    def on_too_large(self, flags: int, request_id: int, length: int) -> None:
        message = self.too_large_message(length)
        logger.error("%s", message)
        if flags & REQUEST and not flags & EVENT:
            reason = f"Fail to decode request due to: java.io.IOException: {message}"
            self._refuse(bool(flags & TWO_WAY), request_id, Status.BAD_REQUEST, reason)

    def on_text(self, data: bytes) -> None:
        """A person types at the port."""
        self._typed += data
        if len(self._typed) > telnet.MAX_LINE:
            self.close()
            return
        while b"\n" in self._typed:
            line, _, rest = bytes(self._typed).partition(b"\n")
            self._typed = bytearray(rest)
            answer = telnet.answer(line.decode("utf-8", "replace").strip(), self._port)
            if answer is None:
                self.close()
                return
            self.send(answer.encode())


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

"""The consumer's end of rest://."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from headrace.services.errors import RpcCode, RpcException
from headrace.services.generic import generic_exception, is_generic_call
from headrace.services.hessian2 import JavaException
from headrace.services.interface import InterfaceModel
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.protocols.rest import attachments as attached
from headrace.services.protocols.rest import json_values
from headrace.services.protocols.rest.http import DEFAULT_PAYLOAD, HttpRequest, HttpResponse
from headrace.services.protocols.rest.http_client import BadAnswer, HttpClient
from headrace.services.url import ANY, URL

DEFAULT_TIMEOUT_MS = 1_000


class RestInvoker(Invoker):
    """Calls one provider over HTTP."""

    def __init__(self, interface: InterfaceModel, url: URL) -> None:
        super().__init__(interface, url)
        self._client = HttpClient(url.host or "", url.port, url.get_int("payload", DEFAULT_PAYLOAD))
        self._attached = {key: url.get(key) for key in ("group", "version", "token") if url.get(key)}
        self._lazy = url.get_bool("lazy", False)
        self._available = self._lazy  # unknown until the first call

    async def connect(self) -> None:
        if self._lazy:
            return
        try:
            await self._client.probe()
            self._available = True
        except OSError as error:
            if self.url.get_bool("check", True):
                raise RpcException(
                    f"Failed to connect to server {self.url.address}, cause: {error.strerror or error}",
                    RpcCode.NETWORK,
                ) from None

    @property
    def is_available(self) -> bool:
        return self._available

    async def invoke(self, invocation: Invocation) -> Result:
        # A generic implementation (`methods=*`) takes `$invoke` unchanged; any other has a path for each method.
        if is_generic_call(invocation) and self.url.get("methods") != ANY:
            return await self._invoke_by_name(invocation)
        return await self._ask(invocation)

    async def _invoke_by_name(self, invocation: Invocation) -> Result:
        """A generic call, made as any HTTP client would: JSON has no classes, so the types do not matter."""
        name, _, arguments = invocation.arguments
        if not isinstance(name, str) or not isinstance(arguments, list | tuple | None):
            raise RpcException("$invoke takes a method name, a list of types and a list of arguments")
        result = await self._ask(
            Invocation(name.strip(), "", arguments or (), invocation.attachments, one_way=invocation.one_way)
        )
        if result.exception is not None:
            result.exception = generic_exception(result.exception)
        return result

    async def _ask(self, invocation: Invocation) -> Result:
        name = invocation.method_name
        timeout_ms = self.url.method_int(name, "timeout", DEFAULT_TIMEOUT_MS)
        headers = {attached.HEADER: attached.write_attachments({**self._attached, **invocation.attachments})}
        try:
            body = json_values.dumps(list(invocation.arguments))
        except (TypeError, ValueError) as error:
            raise RpcException(f"Failed to invoke {name}: {error}", RpcCode.SERIALIZATION) from None
        request = HttpRequest("POST", f"/{quote(self.url.path)}/{quote(name)}", headers, body)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                response = await self._client.request(request)
            self._available = True
        except TimeoutError:
            raise RpcException(
                f"Invoke remote method timeout. method: {name}, provider: {self.url}, timeout: {timeout_ms} ms",
                RpcCode.TIMEOUT,
                reason=f"{self.url.address} did not answer within {timeout_ms} ms",
            ) from None
        except (OSError, EOFError, BadAnswer) as error:
            self._available = not isinstance(error, OSError)
            raise RpcException(
                f"Failed to invoke remote method: {name}, provider: {self.url}, cause: {str(error) or 'closed'}",
                RpcCode.NETWORK,
                reason=f"{self.url.address} did not answer: {str(error) or 'the connection was closed'}",
            ) from None
        return self._result(response, invocation)

    def _result(self, response: HttpResponse, invocation: Invocation) -> Result:
        name = invocation.method_name
        attachments = attached.parse_attachments(response.headers.get(attached.HEADER, ""))
        try:
            value = json_values.loads(response.body)
        except ValueError as error:
            raise RpcException(
                f"Failed to invoke remote method: {name}, the answer is not JSON: {error}"
            ) from None
        if response.status == 200:
            if invocation.method is not None:
                value = json_values.prepare(value, invocation.method.returns)
            return Result(value, None, attachments)
        failure = value.get("error", {}) if isinstance(value, dict) else {}
        kind, message = str(failure.get("type", "")), str(failure.get("message", ""))
        if response.status == 500 and "." in kind:
            return Result(None, JavaException(kind, message), attachments)
        raise RpcException(
            f"Failed to invoke remote method: {name}, provider: {self.url}, status {response.status}, cause: {message}",
            RpcCode.NETWORK,
            reason=message,
        )

    async def destroy(self) -> None:
        self._available = False
        await self._client.close()

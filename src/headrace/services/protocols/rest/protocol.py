"""rest://: `POST /<path>/<method>` with a JSON object (or list) of arguments, answered with the JSON result.

`GET` takes arguments from the query, `GET /openapi.json` describes everything behind the port. Attachments travel in
the header `Dubbo-Attachments: key=value,…`, as Dubbo's own rest protocol sends them; group, version and token too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

import h11

from headrace.services.errors import RpcCode, RpcException, ServicesError
from headrace.services.hessian2 import DEFAULT_CLASSES, Hessian2Error, JavaException, java_exception_name
from headrace.services.interface import InterfaceModel, MethodModel
from headrace.services.invocation import Attachments, Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.pool import PoolExhaustedError
from headrace.services.protocols.base import Exporter, Protocol
from headrace.services.protocols.rest import json_values, openapi
from headrace.services.protocols.rest.http import HttpClient, HttpConnection, Request, Response
from headrace.services.url import URL

if TYPE_CHECKING:
    from headrace.services.runtime import Runtime

logger = logging.getLogger("headrace.services.rest")

DEFAULT_PAYLOAD = 8 * 1024 * 1024
DEFAULT_TIMEOUT_MS = 1_000
ATTACHMENTS = "dubbo-attachments"
_STATUS = {RpcCode.FORBIDDEN: 403, RpcCode.LIMIT_EXCEEDED: 429, RpcCode.TIMEOUT: 504}


class RestProtocol(Protocol):
    """One HTTP server a port."""

    name = "rest"
    default_port = 8080

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._servers: dict[int, RestServer] = {}
        self._opening = asyncio.Lock()

    async def export(self, invoker: Invoker) -> Exporter:
        port = invoker.url.get_int("bind.port", invoker.url.port)
        async with self._opening:
            if port not in self._servers:
                server = RestServer(self.runtime, invoker.url, port)
                await server.start()
                self._servers[port] = server
        return self._servers[port].add(invoker)

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        invoker = RestInvoker(interface, url)
        await invoker.connect()
        return invoker

    async def destroy(self) -> None:
        wait = self.runtime.shutdown_wait_ms / 1000
        await asyncio.gather(*(server.close(wait) for server in self._servers.values()))
        self._servers.clear()


class RestExporter(Exporter):
    """One service behind a port."""

    def __init__(self, invoker: Invoker, server: RestServer) -> None:
        super().__init__(invoker)
        self._server = server

    async def unexport(self) -> None:
        self._server.remove(self.invoker)


class RestServer:
    """Answers HTTP requests with the services exported on one port."""

    def __init__(self, runtime: Runtime, url: URL, port: int) -> None:
        self._runtime = runtime
        self._url = url
        self._port = port
        self._services: dict[str, dict[str, Invoker]] = {}  # by path, then by group and version
        self._connections: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        loop = self._runtime.loop
        payload = self._url.get_int("payload", DEFAULT_PAYLOAD)
        host = (
            "0.0.0.0"
            if self._url.get_bool("anyhost", False)
            else self._url.get("bind.ip", self._url.host or "")
        )
        reserved = self._runtime.reserved.pop(self._port, None)

        def make() -> HttpConnection:
            return HttpConnection(self.handle, payload, self._connections)

        try:
            if reserved is not None:
                self._server = await loop.create_server(make, sock=reserved, backlog=1024)
            else:
                self._server = await loop.create_server(make, host, self._port, backlog=1024)
        except OSError as error:
            raise ServicesError(
                f"Fail to start server on {host}:{self._port}: {error.strerror or error}; "
                "choose another dubbo.protocol.port"
            ) from None

    async def close(self, wait_seconds: float) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.finish()
        deadline = self._runtime.loop.time() + wait_seconds
        while any(c.is_busy for c in self._connections) and self._runtime.loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    def add(self, invoker: Invoker) -> Exporter:
        self._services.setdefault(invoker.url.path, {})[_choice(invoker.url)] = invoker
        return RestExporter(invoker, self)

    def remove(self, invoker: Invoker) -> None:
        offered = self._services.get(invoker.url.path, {})
        if offered.get(_choice(invoker.url)) is invoker:
            del offered[_choice(invoker.url)]

    # -- requests ----------------------------------------------------------------------------------------

    async def handle(self, request: Request) -> Response:
        parts = urlsplit(request.target)
        path = unquote(parts.path).strip("/")
        if path in ("openapi.json", ""):
            invokers = [invoker for offered in self._services.values() for invoker in offered.values()]
            return Response(200, json_values.dumps(openapi.describe(invokers)))
        service, _, name = path.rpartition("/")
        attachments = parse_attachments(request.headers.get(ATTACHMENTS, ""))
        invoker = self._find(service, attachments)
        if invoker is None:
            return failure(404, "ServiceNotFound", f"there is no service {service!r} here, see /openapi.json")
        method = invoker.interface.find(name)
        if method is None:
            return failure(404, "MethodNotFound", f"the service {service!r} has no method {name!r}")
        if request.method not in ("GET", "POST"):
            return failure(405, "MethodNotAllowed", "use POST with a JSON body, or GET with a query")
        try:
            arguments = _read_arguments(request, parts.query, method)
        except (ValueError, TypeError) as error:
            return failure(400, "BadRequest", str(error))
        bearer = request.headers.get("authorization", "")
        if bearer.lower().startswith("bearer "):
            attachments.setdefault("token", bearer[7:].strip())
        invocation = Invocation(
            method.name,
            method.parameter_types,
            arguments,
            attachments,
            method=method,
            remote_address=request.remote_address,
            local_address=request.local_address,
        )
        return await self._call(invoker, invocation)

    async def _call(self, invoker: Invoker, invocation: Invocation) -> Response:
        try:
            result = await invoker.invoke(invocation)
        except PoolExhaustedError as error:
            return failure(503, "ThreadPoolExhausted", str(error))
        except RpcException as error:
            status = 401 if "Invalid token!" in str(error) else _STATUS.get(RpcCode(error.code), 500)
            return failure(status, "RpcException", str(error))
        headers = {}
        if result.attachments:
            headers[ATTACHMENTS] = write_attachments(result.attachments)
        if result.exception is not None:
            answer = exception_failure(result.exception)
        else:
            try:
                answer = Response(200, json_values.dumps(result.value))
            except (TypeError, ValueError, RecursionError) as error:
                answer = failure(
                    500, "BadResponse", f"the result of {invocation.method_name} cannot be sent: {error}"
                )
        answer.headers |= headers
        return answer

    def _find(self, path: str, attachments: Attachments) -> Invoker | None:
        offered = self._services.get(path, {})
        group, version = attachments.get("group", ""), attachments.get("version", "")
        chosen = offered.get(f"{group}/{'' if version == '0.0.0' else version}")
        if chosen is None and not group and not version and len(offered) == 1:
            chosen = next(iter(offered.values()))
        return chosen


def _choice(url: URL) -> str:
    return f"{url.get('group')}/{url.get('version')}"


def _read_arguments(request: Request, query: str, method: MethodModel) -> Sequence[object]:
    """The arguments in a request; raises ValueError or TypeError with a sentence for the caller."""
    if request.method == "GET":
        annotations = {p.name: p.annotation for p in method.parameters}
        given = {
            key: json_values.from_text(values[-1], annotations.get(key, str))
            for key, values in parse_qs(query, keep_blank_values=True).items()
        }
        return method.convert(method.bind((), given))
    try:
        body = json_values.loads(request.body) if request.body else {}
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if isinstance(body, dict):
        values = method.bind((), body)
    elif isinstance(body, list):
        values = method.bind(body, {})
    else:
        raise ValueError("the body must be a JSON object with the arguments by name, or a list of them")
    prepared = []
    for value, parameter in zip(values, method.parameters, strict=True):
        try:
            prepared.append(json_values.prepare(value, parameter.annotation))
        except Hessian2Error as error:
            raise ValueError(f"the argument {parameter.name!r} does not fit: {error}") from None
    return method.convert(prepared)


def failure(status: int, kind: str, message: str) -> Response:
    return Response(status, json_values.dumps({"error": {"type": kind, "message": message}}))


def exception_failure(error: BaseException) -> Response:
    """What the implementation raised, by its Java name so that every consumer reads the same."""
    if isinstance(error, JavaException):
        return failure(500, error.class_name, error.message or "")
    answer = failure(500, java_exception_name(type(error), DEFAULT_CLASSES), str(error))
    answer.headers["python-exception"] = type(error).__name__
    return answer


def parse_attachments(header: str) -> Attachments:
    pairs = (pair.partition("=") for pair in header.split(",") if "=" in pair)
    return {unquote(key.strip()): unquote(value.strip()) for key, _, value in pairs}


def write_attachments(attachments: Attachments) -> str:
    return ",".join(
        f"{quote(str(key), safe='')}={quote(str(value), safe='.:/')}" for key, value in attachments.items()
    )


class RestInvoker(Invoker):
    """Calls one provider over HTTP."""

    def __init__(self, interface: InterfaceModel, url: URL) -> None:
        super().__init__(interface, url)
        self._client = HttpClient(url.host or "", url.port, url.get_int("payload", DEFAULT_PAYLOAD))
        self._attached = {key: url.get(key) for key in ("group", "version", "token") if url.get(key)}
        self._available = False

    async def connect(self) -> None:
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
        name = invocation.method_name
        timeout_ms = self.url.method_int(name, "timeout", DEFAULT_TIMEOUT_MS)
        headers = {ATTACHMENTS: write_attachments({**self._attached, **invocation.attachments})}
        try:
            body = json_values.dumps(list(invocation.arguments))
        except (TypeError, ValueError) as error:
            raise RpcException(f"Failed to invoke {name}: {error}", RpcCode.SERIALIZATION) from None
        request = Request("POST", f"/{quote(self.url.path)}/{quote(name)}", headers, body)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                response = await self._client.request(request)
            self._available = True
        except TimeoutError:
            raise RpcException(
                f"Invoke remote method timeout. method: {name}, provider: {self.url}, timeout: {timeout_ms} ms",
                RpcCode.TIMEOUT,
            ) from None
        except (OSError, EOFError, h11.RemoteProtocolError) as error:
            self._available = not isinstance(error, OSError)
            raise RpcException(
                f"Failed to invoke remote method: {name}, provider: {self.url}, cause: {error or 'closed'}",
                RpcCode.NETWORK,
            ) from None
        return self._result(response, invocation)

    def _result(self, response: Response, invocation: Invocation) -> Result:
        name = invocation.method_name
        attachments = parse_attachments(response.headers.get(ATTACHMENTS, ""))
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
        told = value.get("error", {}) if isinstance(value, dict) else {}
        kind, message = str(told.get("type", "")), str(told.get("message", ""))
        if response.status == 500 and "." in kind:
            return Result(None, JavaException(kind, message), attachments)
        raise RpcException(
            f"Failed to invoke remote method: {name}, provider: {self.url}, status {response.status}, cause: {message}",
            RpcCode.NETWORK,
        )

    async def destroy(self) -> None:
        self._available = False
        await self._client.close()

"""The provider's end of rest://: which service and method a request is for, its arguments, its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from headrace.services.errors import RpcCode, RpcException, ServicesError
from headrace.services.field_names import STRICT, refuse_unknown_fields
from headrace.services.generic import GENERIC_TYPES, INVOKE, GenericService
from headrace.services.hessian2 import DEFAULT_CLASSES, Hessian2Error, JavaException, java_exception_name
from headrace.services.interface import MethodModel
from headrace.services.invocation import Attachments, Invocation
from headrace.services.invoker import Invoker
from headrace.services.pool import PoolExhaustedError
from headrace.services.protocols.base import Exporter, ProtocolRuntime
from headrace.services.protocols.rest import attachments as attached
from headrace.services.protocols.rest import json_values, openapi
from headrace.services.protocols.rest.http import DEFAULT_PAYLOAD, HttpRequest, HttpResponse
from headrace.services.protocols.rest.http_server import HttpConnection, HttpLimits
from headrace.services.suggest import suggestion
from headrace.services.url import URL, build_key

logger = logging.getLogger("headrace.services.rest")

_STATUS = {RpcCode.FORBIDDEN: 403, RpcCode.LIMIT_EXCEEDED: 429, RpcCode.TIMEOUT: 504}


class RestExporter(Exporter):
    """One service behind a port."""

    def __init__(self, invoker: Invoker, server: RestServer) -> None:
        super().__init__(invoker)
        self._server = server

    async def unexport(self) -> None:
        self._server.remove(self.invoker)


class RestServer:
    """Answers HTTP requests with the services exported on one port."""

    def __init__(self, runtime: ProtocolRuntime, url: URL, port: int) -> None:
        self._runtime = runtime
        self._url = url
        self._port = port
        self._services: dict[str, dict[str, Invoker]] = {}  # by path, then by group and version
        self._connections: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        loop = self._runtime.loop
        limits = HttpLimits(
            max_body=self._url.get_int("payload", DEFAULT_PAYLOAD),
            max_connections=self._url.get_int("accepts", 0),
            tcp_keep_alive=self._url.get_bool("keepalive", True),
        )
        host = (
            "0.0.0.0"
            if self._url.get_bool("anyhost", False)
            else self._url.get("bind.ip", self._url.host or "")
        )
        reserved = self._runtime.reserved.pop(self._port, None)

        def make() -> HttpConnection:
            return HttpConnection(self.handle, limits, self._connections)

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

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    def add(self, invoker: Invoker) -> Exporter:
        self._services.setdefault(invoker.url.path, {})[_choice(invoker.url)] = invoker
        return RestExporter(invoker, self)

    def remove(self, invoker: Invoker) -> None:
        offered = self._services.get(invoker.url.path, {})
        if offered.get(_choice(invoker.url)) is invoker:
            del offered[_choice(invoker.url)]

    # -- requests ----------------------------------------------------------------------------------------

    async def handle(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.target)
        path = unquote(parts.path).strip("/")
        if path in ("openapi.json", ""):
            invokers = [invoker for offered in self._services.values() for invoker in offered.values()]
            return HttpResponse(200, json_values.dumps(openapi.describe(invokers)))
        service, _, name = path.rpartition("/")
        attachments = attached.parse_attachments(request.headers.get(attached.HEADER, ""))
        bearer = request.headers.get("authorization", "")
        if bearer.lower().startswith("bearer "):
            attachments.setdefault("token", bearer[7:].strip())
        invoker = self._find(service, attachments)
        if invoker is None:
            return failure(404, "ServiceNotFound", self._not_found(service, attachments))
        method = invoker.interface.find(name)
        if method is None and invoker.interface.cls is GenericService:
            return await self._call_generic(invoker, name, request, attachments)
        if method is None:
            near = suggestion(name, sorted(invoker.interface.methods))
            return failure(404, "MethodNotFound", f"the service {service!r} has no method {name!r}.{near}")
        if request.method not in ("GET", "POST"):
            return failure(405, "MethodNotAllowed", "use POST with a JSON body, or GET with a query")
        try:
            arguments = _read_arguments(
                request, parts.query, method, strict=attachments.get(STRICT) == "true"
            )
        except (ValueError, TypeError) as error:
            return failure(400, "BadRequest", str(error))
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

    async def _call_generic(
        self, invoker: Invoker, name: str, request: HttpRequest, attachments: Attachments
    ) -> HttpResponse:
        """A generic implementation answers every method in one place; there is nothing to check arguments with."""
        try:
            given = json_values.loads(request.body) if request.body else []
        except ValueError as error:
            return failure(400, "BadRequest", f"the body is not JSON: {error}")
        if request.method != "POST" or not isinstance(given, list):
            return failure(
                400, "BadRequest", "a generic service is called with POST and a JSON list of arguments"
            )
        invocation = Invocation(
            INVOKE,
            GENERIC_TYPES,
            [name, [], given],
            attachments,
            remote_address=request.remote_address,
            local_address=request.local_address,
        )
        return await self._call(invoker, invocation)

    async def _call(self, invoker: Invoker, invocation: Invocation) -> HttpResponse:
        try:
            result = await invoker.invoke(invocation)
        except PoolExhaustedError as error:
            return failure(503, "ThreadPoolExhausted", str(error))
        except RpcException as error:
            status = 401 if "Invalid token!" in str(error) else _STATUS.get(RpcCode(error.code), 500)
            return failure(status, "RpcException", str(error))
        headers = {}
        if result.attachments:
            headers[attached.HEADER] = attached.write_attachments(result.attachments)
        if result.exception is not None:
            answer = exception_failure(result.exception)
        else:
            try:
                answer = HttpResponse(200, json_values.dumps(result.value))
            except (TypeError, ValueError, RecursionError) as error:
                answer = failure(
                    500, "BadResponse", f"the result of {invocation.method_name} cannot be sent: {error}"
                )
        answer.headers |= headers
        return answer

    def _not_found(self, path: str, attachments: Attachments) -> str:
        offered = [invoker.url.service_key for invoker in self._services.get(path, {}).values()]
        if not offered:
            return f"there is no service {path!r} here, see /openapi.json"
        wanted = build_key(path, _text(attachments, "group"), _text(attachments, "version"))
        return (
            f"there is no {wanted} here, only {', '.join(sorted(offered))}: may be version or group mismatch"
        )

    def _find(self, path: str, attachments: Attachments) -> Invoker | None:
        offered = self._services.get(path, {})
        group, version = attachments.get("group", ""), attachments.get("version", "")
        chosen = offered.get(f"{group}/{'' if version == '0.0.0' else version}")
        if chosen is None and not group and not version and len(offered) == 1:
            chosen = next(iter(offered.values()))
        return chosen


def _choice(url: URL) -> str:
    return f"{url.get('group')}/{url.get('version')}"


def _text(attachments: Attachments, key: str) -> str:
    return str(attachments.get(key) or "")


def _read_arguments(
    request: HttpRequest, query: str, method: MethodModel, *, strict: bool
) -> Sequence[object]:
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
    if strict:
        refuse_unknown_fields(values, method)
    prepared = []
    for value, parameter in zip(values, method.parameters, strict=True):
        try:
            prepared.append(json_values.prepare(value, parameter.annotation))
        except Hessian2Error as error:
            raise ValueError(f"the argument {parameter.name!r} does not fit: {error}") from None
        except RecursionError:
            raise ValueError(f"the argument {parameter.name!r} is nested too deeply") from None
    return method.convert(prepared)


def failure(status: int, kind: str, message: str) -> HttpResponse:
    return HttpResponse(status, json_values.dumps({"error": {"type": kind, "message": message}}))


def exception_failure(error: BaseException) -> HttpResponse:
    """What the implementation raised, by its Java name so that every consumer reads the same."""
    if isinstance(error, JavaException):
        return failure(500, error.class_name, error.message or "")
    return failure(500, java_exception_name(type(error), DEFAULT_CLASSES), str(error))

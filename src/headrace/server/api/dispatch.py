"""From a frame to a handler and back: looks up the API, decodes, calls, replies, and decides what an error means."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, cast

from headrace.server.api.context import Context
from headrace.server.api.engines import Engines
from headrace.server.api.metering import start_meter, tell_throttle_time
from headrace.server.api.registry import APIS, Api
from headrace.server.net.connection import FAILED_INSIDE, Connection
from headrace.server.quotas.meter import Metered
from headrace.wire.codec import WireError, decode
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import API_VERSIONS_KEY, encode_reply, read_client_id, read_request_start
from headrace.wire.schema import Request, Response

log = logging.getLogger(__name__)


class Dispatcher:
    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._quotas = engines.quotas
        self.turn = engines.turn
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_begin = 0
        """Tasks that were made in this turn of the loop and have yet to run."""
        self._answered: list[Connection] = []
        """Connections whose reply waits for those."""

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        key, version, correlation_id = read_request_start(frame)
        api = APIS.get(key)
        if api is None:
            raise WireError(f"API key {key} is not served here")
        if not api.lowest <= version <= api.highest:
            if key != API_VERSIONS_KEY:
                raise WireError(
                    f"{api.name} version {version} is not served here ({api.lowest} to {api.highest} are)"
                )
            self._refuse_api_versions(connection, api, correlation_id)
            return
        if api.handle is None and api.handle_frame is None:
            api.load()
        flexible = version >= api.request.FLEXIBLE
        client_id, position = read_client_id(frame, flexible)
        context = Context(self._engines, connection, version, correlation_id, client_id)
        if self._quotas.in_force:
            context.meter = start_meter(context, len(frame) - position)
            if context.meter is not None:
                self._serve_metered(api, context, frame, position)
                return
        if api.handle_frame is not None:
            api.handle_frame(context, frame, position)
            return
        request, _ = decode(api.request, version, frame, position)
        self._call(api, context, request)

    def _serve_metered(self, api: Api, context: Context, frame: memoryview, position: int) -> None:
        assert context.meter is not None
        try:
            if api.handle_frame is not None:
                api.handle_frame(context, frame, position)
            else:
                request, _ = decode(api.request, context.version, frame, position)
                self._call(api, context, request)
        finally:
            context.meter.pause()

    def _call(self, api: Api, context: Context, request: Request) -> None:
        assert api.handle is not None
        try:
            result = api.handle(context, request)
        except Exception as error:
            result = self._failed(api, error)
        if isinstance(result, Coroutine):
            context.connection.mute()
            # Kept while it runs: the loop itself holds tasks weakly.
            self._tasks.add(asyncio.get_running_loop().create_task(self._finish(api, context, result)))
            self._to_begin += 1
        else:
            self._reply(api, context, result)

    async def _finish(
        self, api: Api, context: Context, pending: Coroutine[Any, Any, Response | bytearray]
    ) -> None:
        self._to_begin -= 1
        try:
            result: Response | bytearray | None = await (
                pending if context.meter is None else Metered(pending, context.meter)
            )
        except Exception as error:
            result = self._failed(api, error)
        finally:
            self._tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))
        if not context.connection.transport.is_closing():  # the client may not have waited for its answer
            self._answer(api, context, result)
        if not self._to_begin:
            self._send_answers()

    def _answer(self, api: Api, context: Context, result: Response | bytearray | None) -> None:
        """The reply leaves with those of the tasks that run next: a write wakes its reader, which costs more than the
        write, and many readers are one process."""
        connection = context.connection
        connection.replies.gather()
        try:
            self._reply(api, context, result)
        except Exception:
            log.exception("the answer to %s cannot be written", api.name)
            self._reply(api, context, None)
            return
        if not self._answered and self._to_begin:
            # In case the last task suspends.
            asyncio.get_running_loop().call_soon(self._send_answers)
        self._answered.append(connection)

    def _send_answers(self) -> None:
        answered, self._answered = self._answered, []
        for connection in answered:
            connection.replies.release()
        for connection in answered:
            connection.unmute()

    def _reply(self, api: Api, context: Context, response: Response | bytearray | None) -> None:
        if response is None:
            context.connection.cut(FAILED_INSIDE)
            return
        if context.meter is not None:
            tell_throttle_time(response, api.response, context.version, context.meter.answered())
        if isinstance(response, bytearray):
            context.reply(response)
            return
        context.reply(encode_reply(response, context.version, context.correlation_id))

    def _failed(self, api: Api, error: Exception) -> Response | None:
        """The response that carries an error at the top, or None when this API has no place for one."""
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        if isinstance(error, KafkaError):
            code = error.code
        else:
            log.error("%s failed", api.name, exc_info=error)
        return api.response.failed(code, str(error))

    def _refuse_api_versions(self, connection: Connection, api: Api, correlation_id: int) -> None:
        """A client newer than this broker asks; the oldest answer tells it what to use instead."""
        from headrace.server.api.api_versions import unsupported

        api.load()
        connection.replies.send(encode_reply(unsupported(), 0, correlation_id))

"""From a frame to a handler and back: looks up the API, decodes, calls, replies, and decides what an error means."""

from __future__ import annotations

import logging
from functools import partial

from headrace.compiled import mypyc_attr
from headrace.server.api.context import Context
from headrace.server.api.engines import Engines
from headrace.server.api.forwarding import is_from_a_broker
from headrace.server.api.metering import start_meter, tell_throttle_time
from headrace.server.api.registry import APIS, Api
from headrace.server.cluster.peers import CLIENT_ID as BROKER_CLIENT_ID
from headrace.server.coordinator.promise import Promise, run
from headrace.server.net.connection import FAILED_INSIDE, Connection
from headrace.server.quotas.meter import Metered
from headrace.wire.codec import WireError, decode
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import API_VERSIONS_KEY, encode_reply, read_client_id, read_request_start
from headrace.wire.schema import Request, Response

log = logging.getLogger(__name__)

UNEXPECTED = "The server experienced an unexpected error when processing the request."
"""In Kafka's words. What it was is for the log alone."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Dispatcher:
    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._quotas = engines.quotas
        self.turn = engines.turn

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        if connection.repeated and len(frame) > 1:
            # By the second byte of the API's key; what is found there checks the first one, too.
            repeated = connection.repeated.get(frame[1])
            if repeated is not None and repeated.serve(connection, frame):
                return
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
        connection.client_id = client_id or ""
        context = Context(self._engines, connection, version, correlation_id, client_id, api=api.name)
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
        if context.client_id is not None and context.client_id.startswith(BROKER_CLIENT_ID):
            context.passed_on = is_from_a_broker(context)
        try:
            result = api.handle(context, request)
        except Exception as error:
            result = self._failed(api, error)
        if result is None:
            context.connection.cut(FAILED_INSIDE)
            return
        if isinstance(result, Response | bytearray):
            context.reply(_encode(api, context, result))
            return
        context.connection.mute()
        if isinstance(result, Promise):
            promise = result
        else:
            promise = run(result if context.meter is None else Metered(result, context.meter))
        promise.when_done(partial(self._answer, api, context))

    def _answer(self, api: Api, context: Context, known: Promise[Response | bytearray]) -> None:
        """The request that muted its connection has its answer, which leaves with others of this turn."""
        error = known.exception()
        result = known.result() if error is None else self._failed(api, error)
        if context.connection.transport.is_closing():
            return  # The client has not waited for it.
        if result is None:
            context.connection.cut(FAILED_INSIDE)
            return
        try:
            reply = _encode(api, context, result)
        except Exception:
            log.exception("the answer to %s cannot be written", api.name)
            context.connection.cut(FAILED_INSIDE)
            return
        context.reply_together(reply)

    def _failed(self, api: Api, error: Exception) -> Response | None:
        """The response that carries an error at the top, or None when this API has no place for one."""
        if isinstance(error, KafkaError):
            return api.response.failed(error.code, str(error))
        log.error("%s failed", api.name, exc_info=error)
        return api.response.failed(ErrorCode.UNKNOWN_SERVER_ERROR, UNEXPECTED)

    def _refuse_api_versions(self, connection: Connection, api: Api, correlation_id: int) -> None:
        """The client is newer than this broker; the oldest response lists the versions to use instead."""
        from headrace.server.api.api_versions import unsupported

        api.load()
        connection.replies.send(encode_reply(unsupported(), 0, correlation_id))


def _encode(api: Api, context: Context, response: Response | bytearray) -> bytearray:
    if context.meter is not None:
        tell_throttle_time(response, api.response, context.version, context.meter.answered())
    if isinstance(response, bytearray):
        return response
    return encode_reply(response, context.version, context.correlation_id)

"""Requests that belong to the controller: any broker takes them and passes them on.

A request that was passed on is not passed on again. When the controller cannot be reached, the broker answers NOT_CONTROLLER
itself, and the client looks for the controller. It goes on in the name of the client, whose quota the controller counts; how long the
client has to wait for that comes back with the reply.

The broker that takes a request asks for the client's permissions. The controller trusts a request that was passed on only if it
came in by the brokers' own listener from a principal that may do what brokers do (CLUSTER_ACTION, as Kafka asks of an Envelope):
a client that takes a broker's client id gains nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from headrace.server.api.context import Context
from headrace.server.cluster.passed_on import Client, client_of
from headrace.server.cluster.peers import CLIENT_ID
from headrace.server.security.operations import Operation
from headrace.wire.errors import KafkaError
from headrace.wire.schema import Request, Response

Q = TypeVar("Q", bound=Request)
R = TypeVar("R", bound=Response)


def to_controller(
    handle: Callable[[Context, Q], Awaitable[R]],
) -> Callable[[Context, Q], Awaitable[R]]:
    @functools.wraps(handle)
    async def forwarding(context: Context, request: Q) -> R:
        if must_forward(context):
            try:
                reply = await context.engines.cluster.ask_controller(
                    request, context.version, asking_client(context)
                )
                return _throttled(context, cast(R, reply))
            except KafkaError:
                pass
        return _throttled(context, await handle(context, request))

    return forwarding


def _throttled(context: Context, response: R) -> R:
    if context.meter is not None and (wait := getattr(response, "throttle_time_ms", 0)):
        context.meter.must_wait(wait)
    return response


def asking_client(context: Context) -> Client | None:
    """Whose request it is; None when a broker asks for itself."""
    if context.passed_on:
        return client_of(context.client_id or "")
    return Client(context.principal.partition(":")[2], context.client_id or "")


def must_forward(context: Context) -> bool:
    """Whether another broker is the controller and nobody passed the request on before."""
    return not _says_it_is_a_broker(context) and not context.engines.cluster.is_controller


def is_from_a_broker(context: Context) -> bool:
    """Whether it says so, came in by the listener that brokers use, and may do what brokers do."""
    return (
        _says_it_is_a_broker(context)
        and context.connection.listener_name == context.engines.config.inter_broker_listener
        and context.may_on_cluster(Operation.CLUSTER_ACTION, asked_for=False)
    )


def _says_it_is_a_broker(context: Context) -> bool:
    return (context.client_id or "").startswith(CLIENT_ID)

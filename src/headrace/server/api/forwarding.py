"""Requests that belong to the controller: any broker takes them and passes them on.

A request that was passed on is not passed on again. When the controller cannot be reached, the broker answers NOT_CONTROLLER
itself, and the client looks for the controller.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from headrace.server.api.context import Context
from headrace.server.cluster.peers import CLIENT_ID
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
                return cast(R, await context.engines.cluster.ask_controller(request, context.version))
            except KafkaError:
                pass
        return await handle(context, request)

    return forwarding


def must_forward(context: Context) -> bool:
    """Whether another broker is the controller and the request has not been passed on before."""
    from_a_broker = (context.client_id or "").startswith(CLIENT_ID)
    return not from_a_broker and not context.engines.cluster.is_controller

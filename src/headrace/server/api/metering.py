"""Which requests count against their client's quotas, and where a reply tells how long the client has to wait."""

from __future__ import annotations

import struct

from headrace.server.api.context import Context
from headrace.server.api.forwarding import is_from_a_broker
from headrace.server.net.connection import Connection
from headrace.server.quotas.client_quotas import Allowance, ClientQuotas
from headrace.server.quotas.meter import Meter
from headrace.wire.schema import Response

_INT32 = struct.Struct(">i")
_FIELD = "throttle_time_ms"


def start_meter(context: Context, size: int) -> Meter | None:
    """None for a broker: whatever the quotas are, they must not stop replication."""
    if is_from_a_broker(context):
        return None
    return client_meter(context.engines.quotas, context.connection, context.client_id, size)


def client_meter(
    quotas: ClientQuotas, connection: Connection, client_id: str | None, size: int
) -> Meter | None:
    """None for a client that no quota limits. Its connection keeps what was looked up."""
    allowance = connection.allowance
    if (
        allowance is None
        or allowance.generation != quotas.generation
        or allowance.client_id != (client_id or "")
    ):
        user = connection.principal.partition(":")[2]
        allowance = connection.allowance = Allowance(quotas, user, client_id or "")
    return None if allowance.unlimited else Meter(quotas, connection, allowance, size)


def tell_throttle_time(
    response: Response | bytearray, kind: type[Response], version: int, milliseconds: int
) -> None:
    """In a response of this kind, or in its frame; some, and some old versions, have no place for it."""
    if not milliseconds:
        return
    if isinstance(response, bytearray):
        first = kind.FIELDS[0]
        assert first.name == _FIELD, "a frame that is ready has its throttle time at a known place"
        if version >= first.versions[0]:
            _INT32.pack_into(response, 9 if version >= kind.FLEXIBLE else 8, milliseconds)
    elif any(field.name == _FIELD for field in kind.FIELDS):
        setattr(response, _FIELD, milliseconds)

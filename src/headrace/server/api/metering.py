"""Which requests count against their client's quotas, and where a reply tells how long the client has to wait."""

from __future__ import annotations

import struct

from headrace.server.api.context import Context
from headrace.server.api.forwarding import is_from_a_broker
from headrace.server.quotas.meter import Meter
from headrace.wire.schema import Response

_INT32 = struct.Struct(">i")
_FIELD = "throttle_time_ms"


def start_meter(context: Context, size: int) -> Meter | None:
    """None for a broker: whatever the quotas are, they must not stop replication."""
    if is_from_a_broker(context):
        return None
    connection = context.connection
    return Meter(context.engines.quotas, connection, connection.principal, context.client_id, size)


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

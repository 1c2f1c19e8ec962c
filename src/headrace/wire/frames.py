"""Frames: the four-byte length, the request header before a body, the response header before a reply."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeVar

from headrace.wire.codec import Buffer, WireError, decode, encode, skip_tags, write_uvarint
from headrace.wire.schema import Request, Response

_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">hhi")
_REQUEST_START = struct.Struct(">ihhih")
_LENGTH_AND_CORRELATION = struct.Struct(">ii")
_INT16 = struct.Struct(">h")

R = TypeVar("R", bound=Response)

API_VERSIONS_KEY = 18
LARGEST_REPLY = 512 * 1024 * 1024
"""The largest reply that a client accepts."""

Endpoint = tuple[int, str, int, str | None]
"""(node id, host, port, rack) of a broker that leads a requested partition."""


def frame_length(buffer: Buffer, position: int) -> int:
    size: int = _LENGTH.unpack_from(buffer, position)[0]
    return size


def read_request_start(frame: Buffer) -> tuple[int, int, int]:
    """(api key, api version, correlation id); the rest of the header depends on the first two."""
    if len(frame) < _HEADER.size:
        raise WireError("the frame is shorter than a request header")
    return _HEADER.unpack_from(frame, 0)


def read_client_id(frame: Buffer, flexible: bool) -> tuple[str | None, int]:
    """The client id and where the body starts. The id has a two-byte length in every header version."""
    try:
        (size,) = _INT16.unpack_from(frame, _HEADER.size)
        position = _HEADER.size + 2
        client_id = None
        if size >= 0:
            if size > len(frame) - position:
                raise WireError("the client id is cut short")
            client_id = str(frame[position : position + size], "utf-8", "replace")
            position += size
        if flexible:
            position = skip_tags(frame, position)
        if position > len(frame):
            raise WireError("the request header is cut short")
    except (struct.error, IndexError):
        raise WireError("the request header is cut short") from None
    return client_id, position


def encode_request(request: Request, version: int, correlation_id: int, client_id: bytes) -> bytearray:
    """A whole request frame."""
    out = bytearray(_REQUEST_START.size) + client_id
    if version >= request.FLEXIBLE:
        out.append(0)
    encode(request, version, out)
    _REQUEST_START.pack_into(out, 0, len(out) - 4, request.API_KEY, version, correlation_id, len(client_id))
    return out


def reply_length(length: Buffer) -> int:
    """The length in the four bytes before a reply. WireError for one that no broker would send."""
    size: int = _LENGTH.unpack(length)[0]
    if not 4 <= size <= LARGEST_REPLY:
        raise WireError(f"a frame of {size} bytes is no Kafka reply")
    return size


def reply_number(frame: Buffer) -> int:
    """The correlation id of a reply, without its length in front."""
    number: int = _LENGTH.unpack_from(frame)[0]
    return number


def decode_reply(reply: type[R], version: int, frame: Buffer) -> R:
    """Decode a reply frame without its length. ApiVersions keeps the old header in every version."""
    start = 5 if version >= reply.FLEXIBLE and reply.API_KEY != API_VERSIONS_KEY else 4
    return decode(reply, version, frame, start)[0]


def encode_reply(response: Response, version: int, correlation_id: int) -> bytearray:
    """A whole response frame. ApiVersions keeps the old header, so that any client can read it."""
    out = bytearray(8)
    if version >= response.FLEXIBLE and response.API_KEY != API_VERSIONS_KEY:
        out.append(0)
    encode(response, version, out)
    _LENGTH_AND_CORRELATION.pack_into(out, 0, len(out) - 4, correlation_id)
    return out


def reply_start(size_after_header: int, correlation_id: int, flexible: bool) -> bytearray:
    """The beginning of a response frame whose body of known size follows in pieces."""
    start = bytearray(_LENGTH_AND_CORRELATION.pack(4 + flexible + size_after_header, correlation_id))
    if flexible:
        start.append(0)
    return start


def write_compact_string(out: bytearray, text: str | None) -> None:
    if text is None:
        out.append(0)
        return
    raw = text.encode()
    write_uvarint(out, len(raw) + 1)
    out += raw


def write_endpoint_tag(out: bytearray, endpoints: Sequence[Endpoint]) -> None:
    """The tag section at the end of a Produce or Fetch reply: tag 0, the brokers to use instead."""
    if not endpoints:
        out.append(0)
        return
    tag = bytearray()
    write_uvarint(tag, len(endpoints) + 1)
    for node_id, host, port, rack in endpoints:
        tag += _LENGTH.pack(node_id)
        write_compact_string(tag, host)
        tag += _LENGTH.pack(port)
        write_compact_string(tag, rack)
        tag.append(0)
    out += b"\x01\x00"
    write_uvarint(out, len(tag))
    out += tag

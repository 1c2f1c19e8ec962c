"""What consumers put inside the opaque bytes of the classic protocol: subscriptions and assignments."""

from __future__ import annotations

import struct

from headrace.wire.codec import WireError, decode, encode
from headrace.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"
NEWEST_VERSION = 3

_INT16 = struct.Struct(">h")


def version_of(data: bytes) -> int:
    """The version before the message, lowered to the newest known here: versions only ever append."""
    if len(data) < 2:
        raise WireError("a consumer's subscription or assignment is shorter than its version")
    version: int = _INT16.unpack_from(data)[0]
    if version < 0:
        raise WireError(f"version {version} of the consumer protocol does not exist")
    return min(version, NEWEST_VERSION)


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return decode(ConsumerProtocolSubscription, version_of(data), data, 2)[0]


def subscribed_topics(data: bytes) -> list[str]:
    """The topics alone, which every version starts with."""
    version_of(data)
    return decode(ConsumerProtocolSubscription, 0, data, 2)[0].topics


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """An empty one for no bytes: the leader gave the member nothing."""
    if not data:
        return ConsumerProtocolAssignment()
    return decode(ConsumerProtocolAssignment, version_of(data), data, 2)[0]


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    return bytes(encode(assignment, version, bytearray(_INT16.pack(version))))

"""The frames of dubbo://: `da bb`, flags, status, a 64-bit id, a 32-bit length, then the body.

Owns the header's layout and the splitting of a byte stream into frames. Splitting never trusts a length: one beyond
the payload limit is reported and its bytes are passed over, bytes that are no frame are handed on as text (people
do open such ports with telnet), and nothing is kept but the frame being received.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from struct import Struct

MAGIC = 0xDABB
MAGIC_BYTES = b"\xda\xbb"
HEADER = Struct(">HBBqi")
HEADER_SIZE = HEADER.size
REQUEST = 0x80
TWO_WAY = 0x40
EVENT = 0x20
SERIALIZATION_MASK = 0x1F
HESSIAN2 = 2
DEFAULT_PAYLOAD = 8 * 1024 * 1024

_unpack = HEADER.unpack_from


class Status(IntEnum):
    """How a request ended, in Dubbo's numbers."""

    OK = 20
    CLIENT_TIMEOUT = 30
    SERVER_TIMEOUT = 31
    CHANNEL_INACTIVE = 35
    BAD_REQUEST = 40
    BAD_RESPONSE = 50
    SERVICE_NOT_FOUND = 60
    SERVICE_ERROR = 70
    SERVER_ERROR = 80
    CLIENT_ERROR = 90
    SERVER_THREADPOOL_EXHAUSTED_ERROR = 100


def frame(flags: int, status: int, request_id: int, body: bytes) -> bytes:
    return HEADER.pack(MAGIC, flags | HESSIAN2, status, request_id, len(body)) + body


class FrameSplitter(ABC):
    """Cuts what arrives into frames; a subclass says what to do with each."""

    def __init__(self, payload: int = DEFAULT_PAYLOAD) -> None:
        self.payload = payload
        self._kept = bytearray()  # the beginning of an incomplete frame
        self._needed = 0  # how long that frame is, as far as is known
        self._pass_over = 0  # bytes of a refused frame still to come

    @abstractmethod
    def on_frame(self, flags: int, status: int, request_id: int, body: bytes) -> None:
        """A whole frame."""

    @abstractmethod
    def on_too_large(self, flags: int, request_id: int, length: int) -> None:
        """A header that announces more than the payload limit; its body will be passed over."""

    @abstractmethod
    def on_text(self, data: bytes) -> None:
        """Bytes that are no frame."""

    def feed(self, data: bytes) -> None:
        """Take what arrived."""
        if self._kept:
            self._kept += data
            if len(self._kept) < self._needed:
                return
            data = bytes(self._kept)
            self._kept.clear()
        position = 0
        if self._pass_over:
            position = min(self._pass_over, len(data))
            self._pass_over -= position
        end = len(data)
        while end - position >= HEADER_SIZE:
            magic, flags, status, request_id, length = _unpack(data, position)
            if magic != MAGIC:
                position = self._text(data, position)
                continue
            if length < 0 or length > self.payload > 0:
                self.on_too_large(flags, request_id, length)
                position += HEADER_SIZE
                skipped = min(max(length, 0), end - position)
                position += skipped
                self._pass_over = max(length, 0) - skipped
                continue
            stop = position + HEADER_SIZE + length
            if stop > end:
                self._needed = stop - position
                break
            self.on_frame(flags, status, request_id, data[position + HEADER_SIZE : stop])
            position = stop
        else:
            if position < end:
                if not MAGIC_BYTES.startswith(data[position : position + 2]):
                    position = self._text(data, position)
                self._needed = HEADER_SIZE
        if position < end:
            self._kept += data[position:]

    def _text(self, data: bytes, position: int) -> int:
        """Hand on what comes before the next frame; returns where that begins."""
        stop = data.find(MAGIC_BYTES, position + 1)
        if stop < 0:
            # The last byte may be the first half of the next frame's magic.
            stop = len(data) - (data[-1] == MAGIC_BYTES[0] and len(data) - position > 1)
        self.on_text(data[position:stop])
        return stop

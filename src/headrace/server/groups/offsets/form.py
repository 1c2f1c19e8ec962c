"""An offset commit apart from its offset and its time. Consumers commit the same partitions again and again, so the whole
record is kept ready but for these numbers and its place in the batch."""

from __future__ import annotations

import struct
from collections.abc import Callable

from headrace.server.groups.messages.offsets import OffsetCommitKey
from headrace.server.groups.records import COMMIT_VERSION, encode_key
from headrace.wire.records import around_index, varint

_VERSION = struct.Struct(">h")
_REST = struct.Struct(">ih")

_Layout = tuple[bytes, bytes, Callable[..., bytes]]
"""What stands before the index, what between it and the offset, and what puts them together with the rest."""


class CommitForm:
    __slots__ = ("_key", "_layouts", "_rest", "leader_epoch", "metadata", "partition", "topic")

    def __init__(self, group: str, topic: str, partition: int, leader_epoch: int, metadata: str) -> None:
        """struct.error or ValueError for what no record can say."""
        self.topic = topic
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self._key = encode_key(OffsetCommitKey(group, topic, partition))
        encoded = metadata.encode()
        self._rest = _REST.pack(leader_epoch, len(encoded)) + encoded
        self._layouts: dict[int, _Layout] = {}
        """By the number of bytes that the index takes."""

    def encode(self, index: int, offset: int, now_ms: int) -> bytes:
        """The record at `index` of a batch: the same bytes as from an `OffsetCommitValue`."""
        number = varint(index)
        before, between, pack = self._layouts.get(len(number)) or self._lay_out(len(number))
        return pack(before, number, between, offset, self._rest, now_ms)

    def _lay_out(self, index_size: int) -> _Layout:
        rest = len(self._rest)
        before, between = around_index(self._key, 2 + 8 + rest + 8, index_size)
        between += _VERSION.pack(COMMIT_VERSION)
        layout = struct.Struct(f">{len(before)}s{index_size}s{len(between)}sq{rest}sqx")
        made = self._layouts[index_size] = (before, between, layout.pack)
        return made

"""Which partition each row goes to, for whole columns at a time: the one it names, by its key as Kafka's Java
client does (murmur2), or spread in runs the size of a batch where there is no key.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.spark.sink_records import Numbers, bounds_of, numbers_of, valid

Hashes = npt.NDArray[np.uint32]

_SEED = np.uint32(0x9747B28C)
_MIX = np.uint32(0x5BD1E995)


def murmur2(keys: pa.Array) -> Hashes:
    """Java's hash of each key; a null counts as an empty key."""
    bounds = bounds_of(keys)
    start, length = bounds[:-1], np.diff(bounds)
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    hashes = _SEED ^ length.astype(np.uint32)
    blocks = length >> 2
    words = np.ndarray((max(len(data) - 3, 0),), "<u4", data, strides=(1,)) if len(data) > 3 else None
    for block in range(int(blocks.max(initial=0))):
        assert words is not None
        here = blocks > block
        if here.all():
            hashes = (hashes * _MIX) ^ _mixed(words[start + 4 * block])
        else:
            rows = np.flatnonzero(here)
            hashes[rows] = (hashes[rows] * _MIX) ^ _mixed(words[start[rows] + 4 * block])
    left, tail = length & 3, start + (blocks << 2)
    for index in (2, 1, 0):
        rows = np.flatnonzero(left > index)
        hashes[rows] ^= data[tail[rows] + index].astype(np.uint32) << np.uint32(8 * index)
    rows = np.flatnonzero(left)
    hashes[rows] *= _MIX
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MIX
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _mixed(words: Hashes) -> Hashes:
    words = words * _MIX
    words ^= words >> np.uint32(24)
    words *= _MIX
    return words


class Spread:
    """Rows without a key: a run of about `run` bytes to one partition, then to the next, beginning anywhere."""

    def __init__(self, run: int) -> None:
        self._run = run
        self._bytes: dict[str, int] = {}

    def place(self, topic: str, sizes: Numbers, available: Sequence[int]) -> Numbers:
        """`available` are the partitions that have a leader."""
        before = self._bytes.get(topic)
        if before is None:
            before = random.randrange(len(available)) * self._run
        ends = np.cumsum(sizes) + before
        self._bytes[topic] = int(ends[-1]) if len(ends) else before
        placed: Numbers = np.array(available, np.int64)[((ends - sizes) // self._run) % len(available)]
        return placed


def place(
    topic: str,
    partitions: Sequence[int],
    available: Sequence[int],
    key: pa.Array | None,
    named: pa.Array | None,
    sizes: Numbers,
    spread: Spread,
) -> Numbers:
    """The partition of each row of one topic. `named` holds the partitions the rows ask for, null where any will do."""
    placed: Numbers = np.full(len(sizes), -1, np.int64)
    if named is not None:
        placed, given = numbers_of(named, -1), valid(named)
        wrong = np.flatnonzero(given & ((placed < 0) | (placed >= len(partitions))))
        if len(wrong):
            raise ValueError(
                f"a row names partition {placed[wrong[0]]} of topic {topic!r}, which has partitions 0 to {len(partitions) - 1}"
            )
        if given.all():
            return placed
    free = placed < 0
    if key is not None:
        keyed = free & valid(key)
        if keyed.any():
            hashed = (murmur2(key) & np.uint32(0x7FFFFFFF)).astype(np.int64) % len(partitions)
            placed = np.where(keyed, hashed, placed)
            free &= ~keyed
    if free.any():
        placed[free] = spread.place(topic, sizes[free], available)
    return placed

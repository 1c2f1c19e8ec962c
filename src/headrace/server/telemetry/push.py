"""One push of a client, read: its series as far as they are kept. Runs in a thread, and costs no more than the bounds here allow."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.wire.compression import Codec, CompressionError, decompress
from headrace.wire.otlp import Distribution, OtlpError, Series, read_metrics

MOST_UNFOLDED_BYTES = 8 * 1024 * 1024
"""A push after decompression."""
MOST_KEPT_BYTES = 512 * 1024
"""What is kept of one push, as `_size` estimates it: some 1,500 series."""


class UnreadablePush(ValueError):
    """The bytes are not the metrics that their compression type promises."""


@dataclass(frozen=True, slots=True)
class Push:
    """The last push of a client."""

    at_ms: int
    series: tuple[Series, ...]
    left_out: int
    """Series that were too many to be kept."""
    size: int

    def emptied(self) -> Push:
        """Without its series, when there is no room for them."""
        return replace(self, series=(), left_out=self.left_out + len(self.series), size=0)


def read_push(codec: Codec, data: bytes, at_ms: int) -> Push:
    try:
        unfolded = decompress(codec, data, MOST_UNFOLDED_BYTES)
        kept: list[Series] = []
        size = left_out = 0
        for series in read_metrics(unfolded):
            room = _size(series)
            if size + room > MOST_KEPT_BYTES:
                left_out += 1
            else:
                kept.append(series)
                size += room
    except (CompressionError, OtlpError) as error:
        raise UnreadablePush(f"The metrics cannot be read: {error}") from None
    return Push(at_ms, tuple(kept), left_out, size)


def _size(series: Series) -> int:
    """About as many bytes as it takes in memory."""
    text = len(series.name) + len(series.unit) + sum(len(key) + len(value) for key, value in series.labels)
    numbers = len(series.value.bounds) * 2 if isinstance(series.value, Distribution) else 0
    return 200 + 4 * text + 100 * len(series.labels) + 32 * numbers

"""The four codecs of record batches, framed as Kafka's Java client frames them.

`decompress` never returns more than `limit` bytes nor allocates much more than that, whatever size the input claims; damaged
input raises CompressionError and nothing else.
"""

from __future__ import annotations

import enum
import struct
from typing import Protocol

import cramjam

DEFAULT_LIMIT = 64 * 1024 * 1024
"""Decompressed bytes that one batch may hold unless the caller allows more."""


class Codec(enum.IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DEFAULT_LEVELS = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
"""Kafka's compression.<codec>.level defaults; for gzip, -1 is zlib's own choice, level 6."""


class CompressionError(ValueError):
    """The bytes are not valid for the codec, or decompress to more than is allowed."""


def compress(codec: Codec, data: bytes | bytearray | memoryview, level: int | None = None) -> bytes:
    if codec == Codec.NONE:
        return bytes(data)
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    if codec == Codec.GZIP:
        return bytes(cramjam.gzip.compress(data, level=6 if level < 0 else level))
    if codec == Codec.SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec == Codec.LZ4:
        return _compress_lz4(memoryview(data), level)
    return bytes(cramjam.zstd.compress(data, level=level))


def decompress(codec: Codec, data: bytes | bytearray | memoryview, limit: int = DEFAULT_LIMIT) -> bytes:
    try:
        if codec == Codec.NONE:
            if len(data) > limit:
                raise _too_large(limit)
            return bytes(data)
        if codec == Codec.SNAPPY:
            return _decompress_snappy(memoryview(data), limit)
        return _decompress_growing(_BOUNDED[codec], data, limit)
    except cramjam.DecompressionError as error:
        raise CompressionError(f"{codec.name.lower()} data is damaged: {error}") from None


def _too_large(limit: int) -> CompressionError:
    return CompressionError(f"the data unfolds to more than the {limit} bytes allowed for one batch")


class _BoundedDecompressor(Protocol):
    def decompress_into(self, input: bytes | bytearray | memoryview, output: bytearray) -> int: ...


_BOUNDED: dict[Codec, _BoundedDecompressor] = {
    Codec.GZIP: cramjam.gzip,
    Codec.LZ4: cramjam.lz4,
    Codec.ZSTD: cramjam.zstd,
}


def _decompress_growing(
    codec: _BoundedDecompressor, data: bytes | bytearray | memoryview, limit: int
) -> bytes:
    # The decoder stops at the end of its output buffer, so a decompression bomb costs at most `limit` bytes.
    size = min(limit, max(4096, 4 * len(data)))
    while True:
        output = bytearray(size)
        try:
            written = codec.decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise
        else:
            del output[written:]
            return bytes(output)
        if size >= limit:
            raise _too_large(limit)
        size = min(limit, size * 4)


# Snappy: the Java client wraps raw blocks in the framing of the xerial library; others send one raw block.

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")


def _compress_xerial(data: memoryview) -> bytes:
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        out += _BLOCK_LENGTH.pack(len(block))
        out += block
    return bytes(out)


def _decompress_snappy(data: memoryview, limit: int) -> bytes:
    if bytes(data[:8]) != _XERIAL_MAGIC:
        if cramjam.snappy.decompress_raw_len(data) > limit:
            raise _too_large(limit)
        return bytes(cramjam.snappy.decompress_raw(data))
    out = bytearray()
    position, end = len(_XERIAL_HEADER), len(data)
    if end < position:
        raise CompressionError("snappy data ends inside its header")
    while position < end:
        if position + 4 > end:
            raise CompressionError("snappy data ends inside a block length")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += 4
        if length < 0 or position + length > end:
            raise CompressionError(
                f"snappy block length {length} does not fit the {end - position} bytes left"
            )
        block = data[position : position + length]
        if len(out) + cramjam.snappy.decompress_raw_len(block) > limit:
            raise _too_large(limit)
        out += bytes(cramjam.snappy.decompress_raw(block))
        position += length
    return bytes(out)


# LZ4: written as a frame of independent 64 KiB blocks, because the Java client cannot read the linked blocks
# of the library's own frame writer. The header's last byte is the checksum of its descriptor.

_LZ4_HEADER = b"\x04\x22\x4d\x18" + b"\x60\x40\x82"
_LZ4_BLOCK = 64 * 1024
_LZ4_UNCOMPRESSED = 0x80000000
_LZ4_LENGTH = struct.Struct("<I")


def _compress_lz4(data: memoryview, level: int) -> bytes:
    out = bytearray(_LZ4_HEADER)
    for start in range(0, len(data), _LZ4_BLOCK):
        block = data[start : start + _LZ4_BLOCK]
        if level == DEFAULT_LEVELS[Codec.LZ4]:  # the default means the fast compressor, as in Kafka
            packed = bytes(cramjam.lz4.compress_block(block, mode="fast", acceleration=1, store_size=False))
        else:
            packed = bytes(
                cramjam.lz4.compress_block(
                    block, mode="high_compression", compression=level, store_size=False
                )
            )
        if len(packed) < len(block):
            out += _LZ4_LENGTH.pack(len(packed))
            out += packed
        else:
            out += _LZ4_LENGTH.pack(len(block) | _LZ4_UNCOMPRESSED)
            out += block
    out += _LZ4_LENGTH.pack(0)
    return bytes(out)

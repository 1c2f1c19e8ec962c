"""Which partition of a coordinator's topic owns a key: the hash that every Kafka broker uses."""

from __future__ import annotations

from functools import lru_cache


def java_hash(text: str) -> int:
    """Java's String.hashCode, which runs over UTF-16 code units and wraps at 32 bits."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(encoded), 2):
        value = (31 * value + (encoded[index] << 8 | encoded[index + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


@lru_cache(maxsize=8192)
def partition_for(key: str, partitions: int) -> int:
    value = java_hash(key)
    return 0 if value == -0x8000_0000 else abs(value) % partitions

"""How operations name a partition."""

from __future__ import annotations

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""

"""The keys of records: text, as people and other clients read them; several columns make a JSON object."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F


def columns_of(key: str | Sequence[str] | None) -> tuple[str, ...]:
    if key is None:
        return ()
    return (key,) if isinstance(key, str) else tuple(key)


def encode(key: Sequence[str]) -> Column:
    """The bytes of the key; no columns, no key."""
    if not key:
        return F.lit(None).cast("binary")
    if len(key) == 1:
        return F.col(key[0]).cast("string").cast("binary")
    return F.to_json(F.struct(*key)).cast("binary")

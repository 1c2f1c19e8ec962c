"""Dead letters as rows for the ``headrace`` sink, in the form `headrace dlq` and headrace.client know.

Key, value and headers stay as they were; headers say why the record is here and where it came from.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.client.dead_letters import ATTEMPT, OFFSET, PARTITION, PREFIX, REASON, TOPIC

_TYPE = "array<struct<key:string,value:binary>>"


def from_records(rows: DataFrame, record: str, value: str, reason: str, topic: str) -> DataFrame:
    """Letters for records that were read and could not be used."""
    headers = F.col(f"{record}.headers")
    own = F.coalesce(
        F.filter(headers, lambda header: ~header["key"].startswith(PREFIX)), F.array().cast(_TYPE)
    )
    added = _headers(
        (REASON, F.col(reason)),
        (ATTEMPT, F.lit("1")),
        (TOPIC, F.col(f"{record}.topic")),
        (PARTITION, F.col(f"{record}.partition")),
        (OFFSET, F.col(f"{record}.offset")),
    )
    return rows.select(
        F.lit(topic).alias("topic"),
        F.col(f"{record}.key").alias("key"),
        F.col(value).alias("value"),
        F.concat(own, added).alias("headers"),
    )


def headers_of_row(reason: Column, topic: str) -> Column:
    """Headers of a letter for a row that was meant for a topic; it has no partition and offset yet."""
    return _headers((REASON, reason), (ATTEMPT, F.lit("1")), (TOPIC, F.lit(topic)))


def _headers(*pairs: tuple[str, Column]) -> Column:
    structs = [
        F.struct(F.lit(name).alias("key"), text.cast("string").cast("binary").alias("value"))
        for name, text in pairs
    ]
    return F.array(*structs).cast(_TYPE)

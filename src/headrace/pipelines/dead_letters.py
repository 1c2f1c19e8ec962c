"""Dead letters as rows for the ``headrace`` sink, in the form `headrace dlq` and headrace.client know.

Key, value and headers stay as they were; headers say why the record is here and where it came from.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.client.dead_letters import ATTEMPT, OFFSET, PARTITION, PREFIX, REASON, TOPIC

_TYPE = "array<struct<key:string,value:binary>>"


def from_records(
    rows: DataFrame, record: str, value: str, reason: str, topic: str, *, again: bool
) -> DataFrame:
    """Letters for records that were read and could not be used. ``again``: they are letters already, so they keep
    where they came from, and the attempt is the next one."""
    headers = F.col(f"{record}.headers")
    own = F.coalesce(
        F.filter(headers, lambda header: ~header["key"].startswith(PREFIX)), F.array().cast(_TYPE)
    )
    if again:
        attempt = F.coalesce(_value_of(headers, ATTEMPT).cast("int"), F.lit(0)) + 1
        origin = [(name, _value_of(headers, name)) for name in (TOPIC, PARTITION, OFFSET)]
    else:
        attempt = F.lit(1)
        places = {TOPIC: "topic", PARTITION: "partition", OFFSET: "offset"}
        origin = [(name, F.col(f"{record}.{column}")) for name, column in places.items()]
    return rows.select(
        F.lit(topic).alias("topic"),
        F.col(f"{record}.key").alias("key"),
        F.col(value).alias("value"),
        F.concat(own, _headers((REASON, F.col(reason)), (ATTEMPT, attempt), *origin)).alias("headers"),
    )


def headers_of_row(reason: Column, topic: str) -> Column:
    """Headers of a letter for a row that was meant for a topic; it has no partition and offset yet."""
    return _headers((REASON, reason), (ATTEMPT, F.lit("1")), (TOPIC, F.lit(topic)))


def _value_of(headers: Column, name: str) -> Column:
    """The text of a header, NULL when there is none."""
    found = F.filter(headers, lambda header: header["key"] == name)
    return F.try_element_at(found, F.lit(1))["value"].cast("string")


def _headers(*pairs: tuple[str, Column]) -> Column:
    structs = [
        F.struct(F.lit(name).alias("key"), text.cast("string").cast("binary").alias("value"))
        for name, text in pairs
    ]
    return F.array(*structs).cast(_TYPE)

"""Arrow functions that decode and encode values in Python, for formats that Spark cannot read without a jar.

The decoder is made once per batch on the worker, from a function that travels there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

if TYPE_CHECKING:
    import pyarrow as pa


def decoded(
    value: Column, schema: StructType, decoder: Callable[[], Callable[[bytes], Mapping[str, object]]]
) -> Column:
    """A struct of value and error; what the decoder raises is the error."""
    result = StructType([StructField("value", schema), StructField("error", StringType())])

    def decode(values: pa.Array) -> pa.Array:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        one, kind = decoder(), to_arrow_type(result, timezone="UTC")
        found: list[dict[str, object]] = []
        for data in values.to_pylist():
            if data is None:
                found.append({"value": None, "error": "the value is null"})
                continue
            try:
                found.append({"value": one(data), "error": None})
            except Exception as error:  # a record may hold anything, and none of it may stop the query
                found.append({"value": None, "error": f"{type(error).__name__}: {error}"})
        try:
            return pa.array(found, type=kind)
        except (pa.ArrowException, OverflowError):
            return pa.array([_fitting(each, kind) for each in found], type=kind)

    return _arrow_function(decode, result)(value)


def _fitting(row: dict[str, object], kind: pa.DataType) -> dict[str, object]:
    """A row, or the error that says why its columns cannot take it: a number with more digits than were agreed, …"""
    import pyarrow as pa

    try:
        pa.array([row], type=kind)
    except (pa.ArrowException, OverflowError) as error:
        return {"value": None, "error": f"{type(error).__name__}: {error}"}
    return row


def encoded(row: Column, encoder: Callable[[], Callable[[Mapping[str, object]], bytes]]) -> Column:
    def encode(rows: pa.Array) -> pa.Array:
        import pyarrow as pa

        one = encoder()
        return pa.array([None if row is None else one(row) for row in rows.to_pylist()], type=pa.binary())

    return _arrow_function(encode, BinaryType())(row)


def _arrow_function(function: Callable[[pa.Array], pa.Array], result: DataType) -> Callable[[Column], Column]:
    from pyspark.sql.pandas.functions import arrow_udf

    function.__annotations__ = {}  # Spark would evaluate them to find the kind of function; without, it is a scalar one
    made: Callable[[Column], Column] = arrow_udf(function, result)  # type: ignore[call-overload]  # no kind is given
    return made

"""Headrace in Spark: the data source `headrace` for batch and streaming, reading and writing, without a jar.

Spark finds it by itself (through the package `pyspark_headrace`). Where that is switched off or the session is
older than the installation, `register(spark)` makes it known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("headrace")` known to a session."""
    from headrace.spark.source import HeadraceSource

    spark.dataSource.register(HeadraceSource)

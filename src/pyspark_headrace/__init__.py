"""What Spark looks for: it imports every installed package named pyspark_* and takes its DefaultSource."""

from headrace.spark.source import HeadraceSource as DefaultSource

__all__ = ["DefaultSource"]

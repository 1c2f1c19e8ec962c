"""Lake tables: Parquet directories and Delta tables, partitioned by time and compacted."""

"""A streaming job of its own process: counts on by 30 in the topic `target` and ends."""

import os
import sys

from pyspark.sql import SparkSession

bootstrap, checkpoint, tasks = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "512m")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
rows = (
    spark.readStream.format("rate-micro-batch")
    .option("rowsPerBatch", 30)
    .load()
    .selectExpr("cast(value as string) key", "cast(value as string) value")
    .repartition(int(tasks))
)
query = (
    rows.writeStream.format("headrace")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("topic", "target")
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()

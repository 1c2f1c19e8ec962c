"""The load of the part `spark`: one Spark session that does what it is told, with either connector.

Run as `python -m bench.spark.load SOCKET CORES JARS`. When the session is up it listens at the socket, and answers each
(work, options) with a dict of figures, or with the first line of what went wrong. One core means one: the JVM and its
Python workers then share it.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Listener
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

Figures = dict[str, float]


class Load:
    def __init__(self, cores: int, jars: str, scratch: Path) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        if cores == 1:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        self.spark = (
            SparkSession.builder.master(f"local[{cores}]")
            .appName("headrace-bench")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "2g")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.python.unix.domain.socket.enabled", "true")  # as docs/spark.md advises
            .config("spark.jars", jars)
            .config("spark.local.dir", str(scratch))
            .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")
        self._scratch = scratch
        self._rows: tuple[int, DataFrame] | None = None

    def batch(self, connector: str, address: str, topic: str, records: int, check: bool) -> Figures:
        """Every column of every record, read and handed on to nothing."""
        frame = self._reader(connector, address, topic)
        if check:
            self._check(frame.count(), records, connector)
        begun = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        return {"per_second": records / (time.monotonic() - begun)}

    def window(self, connector: str, address: str, topic: str, records: int, limit: int) -> Figures:
        """A stream of what the topic holds, counted by seconds of event time, `limit` records a batch.

        What counts is the time of the micro-batches: a stream is started once and runs for long.
        """
        stream = (
            self.spark.readStream.format(connector)
            .options(**{"kafka.bootstrap.servers": address, "subscribe": topic})
            .options(startingOffsets="earliest", maxOffsetsPerTrigger=str(limit))
            .load()
            .withWatermark("timestamp", "10 seconds")
            .groupBy(f.window("timestamp", "1 second"))
            .agg(f.count("*").alias("rows"), f.sum(f.length("value")).alias("bytes"))
        )
        checkpoint = tempfile.mkdtemp(dir=self._scratch)
        writer = stream.writeStream.format("noop").outputMode("update")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        batches = query.recentProgress
        self._check(sum(batch.numInputRows for batch in batches), records, connector)
        shutil.rmtree(checkpoint, ignore_errors=True)
        return {"per_second": records * 1000 / sum(batch.durationMs["triggerExecution"] for batch in batches)}

    def write(self, connector: str, address: str, topic: str, records: int, size: int) -> Figures:
        """Rows that lie ready in Spark's memory, written to a topic."""
        if self._rows is None or self._rows[0] != records:
            rows = self.spark.range(0, records, 1, 2).select(
                f.col("id").cast("string").cast("binary").alias("key"),
                f.rpad(f.sha2(f.col("id").cast("string"), 256), size, "x").cast("binary").alias("value"),
            )
            self._rows = (records, rows.persist())
            self._rows[1].count()
        writer = self._rows[1].write.format(connector).mode("append")
        begun = time.monotonic()
        writer.options(**{"kafka.bootstrap.servers": address, "topic": topic}).save()
        return {"per_second": records / (time.monotonic() - begun)}

    def delay(self, connector: str, address: str, topic: str, seconds: float) -> Figures:
        """From a record's timestamp to the moment its row is in the driver's hands, in milliseconds.

        The clock runs from the first row on; the first quarter of the time is the warm-up.
        """
        delays: list[float] = []
        begun = 0.0

        def take(frame: DataFrame, batch: int) -> None:
            nonlocal begun
            rows = frame.select(f.unix_millis("timestamp")).collect()
            now = time.time() * 1000
            begun = begun or time.monotonic()
            if time.monotonic() - begun > seconds / 4:
                delays.extend(now - row[0] for row in rows)

        checkpoint = tempfile.mkdtemp(dir=self._scratch)
        stream = (
            self.spark.readStream.format(connector)
            .options(**{"kafka.bootstrap.servers": address, "subscribe": topic})
            .load()
        )
        query = stream.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).start()
        limit = time.monotonic() + seconds + 60
        while time.monotonic() < limit and not (delays and time.monotonic() > begun + seconds):
            query.awaitTermination(1)
        query.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)
        if not delays:
            raise RuntimeError(f"{connector} gave no row within {seconds + 60:g} s")
        delays.sort()
        return {
            "p50_ms": delays[len(delays) // 2],
            "p99_ms": delays[len(delays) * 99 // 100],
            "records": len(delays),
        }

    def _reader(self, connector: str, address: str, topic: str) -> DataFrame:
        options = {"kafka.bootstrap.servers": address, "subscribe": topic}
        return self.spark.read.format(connector).options(**options).load()

    def _check(self, found: int, wanted: int, connector: str) -> None:
        if found != wanted:
            raise RuntimeError(f"{connector} read {found} records where the topic holds {wanted}")


def main(socket: str, cores: int, jars: str) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="headrace-spark-"))
    try:
        load = Load(cores, jars, scratch)
        with Listener(socket, "AF_UNIX") as listener, listener.accept() as wire:
            works: dict[str, Callable[..., Figures]] = {
                "batch": load.batch,
                "window": load.window,
                "write": load.write,
                "delay": load.delay,
            }
            while True:
                try:
                    work, options = wire.recv()
                except EOFError:
                    break
                try:
                    wire.send(works[work](**options))
                except Exception as error:
                    wire.send(f"{work}: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
        load.spark.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

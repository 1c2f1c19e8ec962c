"""The Spark session a pipeline runs in: local by default, any master on request, with its chatter in a file."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.pipelines.masters import check_master, why
from headrace.spark import interpreter

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -Xshare:auto"
"""Options of a JVM that ends before thorough compilation pays. None chooses a collector: JAVA_TOOL_OPTIONS may choose
one, and Java refuses to start with two."""
_PATIENCE = 5.0
"""Seconds in which Spark may end what it does; then its process is killed. Whatever it was doing, the next run finds what a
crash would have left, and goes on from there."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def open_session(name: str, master: str, settings: Mapping[str, str], root: Path) -> SparkSession:
    """A session with the project's settings; where they are silent, those that suit a stream on few cores.
    Raises SparkDidNotStart."""
    check_master(master)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        # Over TCP every task of a Python source waits 40 ms for an acknowledgement that the kernel delays.
        "spark.python.unix.domain.socket.enabled": "true",
    }
    directory = root / ".headrace"
    directory.mkdir(exist_ok=True)
    # Spark looks for data sources with the interpreter this names, and runs the workers with it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Of the JVM that only puts Spark's command line together.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", SHORT_LIVED)
    if master.startswith("local"):
        interpreter.use(directory)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        defaults |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**defaults, **settings}.items():
        builder = builder.config(key, value)
    # An error in a query is told in one sentence; PySpark would log it as well, with the whole stack.
    for chatty in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL + 1)
    # Whoever ends this process may end Spark's at the same time: PySpark would print the stack of the lost connection,
    # and py4j log it, in its own name and in the root's.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    log = directory / "spark.log"
    try:
        with _speaking_to(log), _own_interrupt():
            return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise why(error, log) from error


def close_session(spark: SparkSession) -> None:
    # Its process may be gone already, which PySpark would warn of.
    with killed_if_slow(spark), suppress(Py4JError, OSError), warnings.catch_warnings(action="ignore"):
        spark.stop()


@contextmanager
def killed_if_slow(spark: SparkSession) -> Iterator[None]:
    """Around calls that end something: on a busy machine they may take minutes while the user waits."""
    timer = threading.Timer(_PATIENCE, _kill, [spark])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kill(spark: SparkSession) -> None:
    """End the JVM of this process; one that somebody else has started is left alone."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Ctrl-C stays what it was: PySpark would ask the JVM to cancel its jobs first, and wait for the answer."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _speaking_to(file: Path) -> Iterator[None]:
    """Processes started meanwhile, Spark's JVM above all, write to a file what they would write to the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    kept = os.dup(1), os.dup(2)
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (*kept, log):
            os.close(descriptor)

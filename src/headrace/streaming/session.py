"""Spark's session: local by default, any master on request, with its chatter in a file and an end in bounded time."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.streaming.masters import check_master, why

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORY = ".headrace"
"""Where a run keeps its files, below the directory of what is run."""
LOG = f"{DIRECTORY}/spark.log"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -Xshare:auto"
"""Options of a JVM that ends before thorough compilation pays. None chooses a collector: JAVA_TOOL_OPTIONS may choose
one, and Java refuses to start with two."""
_PATIENCE = 5.0
"""Seconds in which Spark may end what it does; then its process is killed. Whatever it was doing, the next run finds what a
crash would have left, and goes on from there."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Session:
    """The Spark of one run, started when it is first needed: not every connector needs it. A session that the program has
    already is used in its place, and left to the program at the end."""

    def __init__(
        self,
        name: str,
        master: str,
        settings: Mapping[str, str],
        root: Path,
        *,
        opening: Callable[[], None] = lambda: None,
    ) -> None:
        """``opening`` is called before Spark is started, which takes a while."""
        self._name = name
        self.master = master
        self._settings = settings
        self._root = root
        self._opening = opening
        self._spark: SparkSession | None = None
        self._is_ours = False
        self._thread: int | None = None  # where it is the active one

    def get(self) -> SparkSession:
        """Raises SparkDidNotStart."""
        check_master(self.master)
        if self._spark is None:
            self._spark = _session_of_the_program()
        if self._spark is None:
            self._opening()
            self._spark = open_session(self._name, self.master, self._settings, self._root)
            self._is_ours = True
        return self._spark

    def be_active(self) -> None:
        """Be the session of this thread, if there is one: only there Spark finds data sources in Python, and a new thread has
        none. Call it before starting queries."""
        if self._spark is not None and self._thread != threading.get_ident():
            kind = type(self._spark)
            kind._get_j_spark_session_class(self._spark._jvm).setActiveSession(self._spark._jsparkSession)
            self._thread = threading.get_ident()

    @contextmanager
    def killed_if_slow(self) -> Iterator[None]:
        """Around calls that end something: on a busy machine they may take minutes while the user waits."""
        if self._spark is None or not self._is_ours:
            yield
            return
        timer = threading.Timer(_PATIENCE, _kill, [self._spark])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        if self._spark is None or not self._is_ours:
            return
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        # Its process may be gone already, which PySpark would warn of.
        with self.killed_if_slow(), suppress(Py4JError, OSError), warnings.catch_warnings(action="ignore"):
            self._spark.stop()
        self._spark = None


def _session_of_the_program() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


def open_session(name: str, master: str, settings: Mapping[str, str], root: Path) -> SparkSession:
    """A session with the project's settings; where they are silent, those that suit a stream on few cores.
    Raises SparkDidNotStart."""
    from py4j.protocol import Py4JError
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from headrace.streaming import interpreter

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
    directory = root / DIRECTORY
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
    # An error in a query becomes one sentence; PySpark would log it as well, with the whole stack.
    for chatty in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL + 1)
    # A signal that ends this process may end Spark's at the same time: PySpark would print the stack of the lost connection,
    # and py4j log it, in its own name and in the root's.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    log = root / LOG
    try:
        with _writing_to(log), _own_interrupt():
            return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise why(error, log) from error


def _kill(spark: SparkSession) -> None:
    """End the JVM of this process; one that was started elsewhere is left alone."""
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
def _writing_to(file: Path) -> Iterator[None]:
    """Processes started meanwhile, above all the JVM, write to a file what they would write to the terminal."""
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

"""Fixtures every test may use: a real broker in this process, topics of their own, a local Spark, real Redis and MariaDB servers."""

import importlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from headrace.compiled import COMPILED, build
from headrace.server.api.registry import APIS
from headrace.testing.broker import BrokerThread
from headrace.testing.topics import create_topic, unique_name

# A script starts its background jobs with SIGINT ignored, and every program they start inherits that. Tests of Ctrl-C
# rely on Python's own handler, here and, since a handler is not inherited, in the programs that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no reason to fail. In CI the examples are the same every time; elsewhere new ones are tried.
settings.register_profile(
    "headrace",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("headrace")


# Brokers import handlers and occasional parts when they are first needed, here in their own threads. pytest parses each module of the package at its first
# import, and Python 3.11 can fail when two threads parse at once ("AST constructor recursion depth mismatch").
for _api in APIS.values():
    _api.load()
for _part in (
    "share.attach",
    "groups.share.service",
    "mirror.mirrors",
    "telemetry.clients",
    "logins",
    "security.server_tls",
):
    importlib.import_module(f"headrace.server.{_part}")


def pytest_collection_modifyitems(items):
    """On the compiled build (make test-compiled) leave out what can only be tried on the sources."""
    if build() != COMPILED:
        return
    for item in items:
        for marker in item.iter_markers("sources"):
            item.add_marker(pytest.mark.skip(reason=f"compiled code calls {marker.args[0]} directly"))


@pytest.fixture
def make_broker(tmp_path):
    """Brokers on demand: `make_broker({"num.partitions": "3"})`; stopped when the test ends."""
    started = []

    def make(settings=None, data=None, **kwargs):
        broker = BrokerThread(data or tmp_path / f"data-{len(started)}", settings, **kwargs).start()
        started.append(broker)
        return broker

    yield make
    for broker in started:
        broker.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """One broker for all tests of a module that do not restart or break it."""
    with BrokerThread(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def bootstrap(broker):
    return broker.bootstrap


@pytest.fixture
def topic(bootstrap):
    """A new topic with one partition."""
    name = unique_name()
    create_topic(bootstrap, name)
    return name


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One local Spark for all Spark tests of a process; whoever asks first starts it."""
    from pyspark.sql import SparkSession

    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.fail("Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless", pytrace=False)
    # Discovery runs the interpreter that the JVM finds by itself, and that is this variable's or plain python3.
    from headrace.streaming.interpreter import worker_python

    os.environ["PYSPARK_PYTHON"] = worker_python(tmp_path_factory.mktemp("python"))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("headrace-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def make_partition(tmp_path):
    """A replica with a real log that no broker runs: `make_partition("topic", 0, replicas=(1, 2))`, led by broker 1."""
    from concurrent.futures import ThreadPoolExecutor

    from headrace.server.cluster.image import Partition as PartitionState
    from headrace.server.config.broker import BrokerConfig
    from headrace.server.log.config import LogConfig
    from headrace.server.log.flusher import GroupFlusher
    from headrace.server.log.manager import LogManager
    from headrace.server.replica.partition import Partition

    logs = LogManager([str(tmp_path / "partitions")])
    logs.open()
    disk = ThreadPoolExecutor(2)

    def make(topic, index=0, replicas=(1,), now=0.0, **settings):
        config = BrokerConfig.load({}).topic_config({k.replace("_", "."): v for k, v in settings.items()})
        log_config = LogConfig.of(config)
        topic_id = uuid.uuid5(uuid.NAMESPACE_URL, topic)
        log = logs.create(topic, index, log_config, topic_id)
        partition = Partition(topic, topic_id, index, log, config, log_config, GroupFlusher(disk))
        partition.take_role(PartitionState(replicas, replicas, leader=1), 1, now)
        return partition

    yield make
    disk.shutdown()
    logs.close()


class Server:
    """A child process with a Unix socket in a directory of its own; it dies with the test run."""

    package: str
    binary: str

    def __init__(self) -> None:
        program = shutil.which(self.binary) or shutil.which(self.binary, path="/usr/sbin:/usr/local/sbin")
        if program is None:
            pytest.fail(f"{self.binary} is missing: apt-get install {self.package}, or make setup as root")
        # Not tmp_path: the path of a Unix socket may have 107 characters at most.
        self.home = Path(tempfile.mkdtemp(prefix="headrace-"))
        self.socket = self.home / "socket"
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def arguments(self) -> list[str]:
        raise NotImplementedError

    def answers(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, *self.arguments()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while not self.answers():
            assert self._process.poll() is None, f"{self.binary} ended with {self._process.returncode}"
            assert time.monotonic() < deadline, f"{self.binary} did not answer within 60 s"
            time.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)


class RedisServer(Server):
    package, binary = "redis-server", "redis-server"

    def arguments(self) -> list[str]:
        return ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.home), "--save", ""]

    def answers(self) -> bool:
        import redis

        try:
            return bool(self.client().ping())
        except redis.ConnectionError:
            return False

    def client(self):
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))


class MariaDbServer(Server):
    package, binary = "mariadb-server-core", "mariadbd"

    def arguments(self) -> list[str]:
        return [
            "--no-defaults",
            f"--user={os.environ.get('USER', 'root') if os.getuid() else 'root'}",
            f"--datadir={self.home / 'data'}",
            f"--socket={self.socket}",
            f"--pid-file={self.home / 'pid'}",
            f"--log-error={self.home / 'log'}",
            "--skip-networking",
            "--skip-grant-tables",
            "--skip-log-bin",
            "--innodb-log-file-size=4M",
            "--innodb-buffer-pool-size=16M",
        ]

    def start(self) -> None:
        (self.home / "data" / "mysql").mkdir(parents=True, exist_ok=True)
        import pymysql

        super().start()
        with pymysql.connect(unix_socket=str(self.socket), user="root") as connection:
            connection.cursor().execute("CREATE DATABASE IF NOT EXISTS test")

    def answers(self) -> bool:
        import pymysql

        try:
            pymysql.connect(unix_socket=str(self.socket), user="root").close()
        except pymysql.OperationalError:
            return False
        return True

    def url(self, database: str = "test", socket: Path | None = None) -> str:
        return f"mysql+pymysql://root@/{database}?unix_socket={socket or self.socket}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        import pymysql

        name = f"d{uuid.uuid4().hex[:12]}"
        with pymysql.connect(unix_socket=str(self.socket), user="root") as connection:
            connection.cursor().execute(f"CREATE DATABASE {name}")
        return self.url(name)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDbServer]:
    server = MariaDbServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A Redis for one test, which may stop it; it keeps nothing on disk."""
    server = RedisServer()
    server.start()
    yield server
    server.remove()

"""What the client's tests share: a cluster, topics, and real Redis and MariaDB servers of their own.

HEADRACE_TEST_BOOTSTRAP names another cluster to test against, such as an Apache Kafka.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pymysql
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.client import Admin, Record
from headrace.client.scan import scan
from headrace.testing.broker import BrokerThread


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = os.environ.get("HEADRACE_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    settings = {"group.initial.rebalance.delay.ms": "0"}
    broker = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    yield broker.bootstrap
    broker.stop()


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap) as admin:
        yield admin


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def new_topic(admin: Admin) -> Callable[..., str]:
    def make(partitions: int = 1, **config: str) -> str:
        name = f"test-{uuid.uuid4().hex[:12]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topic(name, partitions=partitions, replication_factor=1, config=settings)
        return name

    return make


@pytest.fixture
def read_all(bootstrap: str, admin: Admin) -> Callable[..., list[Record]]:
    """Everything a topic holds now, without a group."""

    def read(topic: str, isolation_level: str = "read_committed") -> list[Record]:
        starts = dict.fromkeys(admin.partitions_of(topic))
        return list(scan({"bootstrap.servers": bootstrap}, starts, isolation_level=isolation_level))

    return read


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
        try:
            return bool(self.client().ping())
        except redis.ConnectionError:
            return False

    def client(self) -> redis.Redis:
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
        super().start()
        with pymysql.connect(unix_socket=str(self.socket), user="root") as connection:
            connection.cursor().execute("CREATE DATABASE IF NOT EXISTS test")

    def answers(self) -> bool:
        try:
            pymysql.connect(unix_socket=str(self.socket), user="root").close()
        except pymysql.OperationalError:
            return False
        return True

    def url(self, database: str = "test", socket: Path | None = None) -> str:
        return f"mysql+pymysql://root@/{database}?unix_socket={socket or self.socket}"

    def new_database(self) -> str:
        """The URL of an empty database."""
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

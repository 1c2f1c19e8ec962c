"""The Python client's runner with each way of `once`, the stores being a Redis and a MariaDB of their own."""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.processes import Broken, Watched
from bench.provision import REDIS, Need, need_packages
from bench.rows import Row, Sample
from bench.session import Session
from bench.systems import Running
from bench.systems.base import ReadyCheck, until_ready
from bench.systems.kafka_protocol import RunningKafka

ORDER = 90
TITLE = "Records handled by the Python runner, 16 at a time"

_MARIADB = Need("/usr/sbin/mariadbd", "mariadb-server-core")
_WAYS = {
    "plain": ("no store", 200_000),
    "redis": ("Once, RedisStore", 40_000),
    "sql": ("Once, SqlStore on MariaDB", 10_000),
    "layered": ("Once, LayeredStore", 10_000),
    "database": ("SqlOnce, the effect in MariaDB", 10_000),
}


@dataclass(frozen=True, slots=True)
class Stores:
    redis: Path
    mariadb: Path

    @property
    def url(self) -> str:
        return f"mysql+pymysql://root@/test?unix_socket={self.mariadb}"


class _Listens(ReadyCheck):
    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self._path)) == 0


def run(session: Session) -> list[Row]:
    need_packages([REDIS, _MARIADB])
    rows: list[Row] = []
    with _stores() as stores, session.running(session.kafka_systems(), "runner") as running:
        for way, (title, full) in _WAYS.items():
            row = Row(f"runner-{way}", title, "records/s", "more", "100 k records")
            measure = partial(_measure, stores, way, session.size(full, 500))
            session.compare(running, [row], measure, rounds=session.rounds(3))
            rows.append(row)
    return rows


def _measure(stores: Stores, way: str, records: int, broker: Running) -> dict[str, Sample]:
    assert isinstance(broker, RunningKafka)
    # Not deleted: a client that looks for a topic just deleted makes Kafka create it again.
    topic = f"runner-{uuid.uuid4().hex[:8]}"
    broker.create(topic, partitions=4)
    broker.load("produce", topic=topic, records=records, size=100, keys=1000)
    command = [sys.executable, "-m", "bench.runner_load", broker.address, topic, topic, str(records), way]
    with broker.metered() as usage:
        done = subprocess.run(
            [*command, str(stores.redis), stores.url],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    if done.returncode != 0:
        raise Broken(f"the runner with {way} failed: {done.stderr.strip().splitlines()[-1:]}")
    rate = json.loads(done.stdout.strip().splitlines()[-1])["records_per_second"]
    return {f"runner-{way}": Sample(rate, usage.cpu_seconds * 1e5 / records, usage.rss_mb)}


@contextmanager
def _stores() -> Iterator[Stores]:
    # A Unix socket's path may have 107 characters at most, so this is not below the working directory.
    home = Path(tempfile.mkdtemp(prefix="headrace-"))
    stores = Stores(home / "redis", home / "mariadb")
    (home / "data" / "test").mkdir(parents=True)
    (home / "data" / "mysql").mkdir()
    redis = [
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        str(stores.redis),
        "--dir",
        str(home),
        "--save",
        "",
    ]
    mariadb = [
        "/usr/sbin/mariadbd",
        "--no-defaults",
        "--user=root",
        f"--datadir={home / 'data'}",
        f"--socket={stores.mariadb}",
        "--skip-networking",
        "--skip-grant-tables",
    ]
    processes: list[Watched] = []
    try:
        for command, path in ((redis, stores.redis), (mariadb, stores.mariadb)):
            processes.append(Watched(command, home / f"{path.name}.log"))
            until_ready(processes[-1], _Listens(path))
        yield stores
    finally:
        for process in processes:
            process.kill()
        shutil.rmtree(home, ignore_errors=True)

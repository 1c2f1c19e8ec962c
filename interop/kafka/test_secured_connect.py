"""Kafka's own Connect (standalone, 4.3) on a secured cluster of three: a file goes through a topic into another file."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bench.processes import Watched, free_port
from bench.provision import KAFKA_VERSION, java, need_jars
from interop.kafka.programs import BUILD, HERE
from interop.kafka.secured import Login, SecuredCluster
from tests.waiting import until

WORKER = Login("worker")


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    if request.config.getoption("--against") == "kafka":
        pytest.skip("the cluster is made by headrace init")
    made = SecuredCluster(tmp_path_factory.mktemp("secured"))
    try:
        made.await_ready()
        made.add_user(WORKER.user)
        yield made
    finally:
        made.process.stop()


def plugins() -> Path:
    """The folder of the file connectors."""
    return need_jars(
        HERE / "connect" / "pom.xml",
        BUILD / "connect" / KAFKA_VERSION,
        f"-Dkafka.version={KAFKA_VERSION}",
    )


class Connect:
    """One standalone worker with a source and a sink."""

    def __init__(self, home: Path, cluster: SecuredCluster) -> None:
        self.source, self.target = home / "source.txt", home / "target.txt"
        login = cluster.settings(WORKER)
        worker = {
            "bootstrap.servers": cluster.bootstrap,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.file.filename": str(home / "offsets"),
            "offset.flush.interval.ms": "500",
            "listeners": f"http://127.0.0.1:{free_port()}",
            "plugin.path": str(plugins()),
        }
        for prefix in ("", "producer.", "consumer.", "admin."):
            worker |= {f"{prefix}{name}": value for name, value in login.items()}
        source = {"connector.class": "FileStreamSource", "file": str(self.source), "topic": "connected"}
        sink = {"connector.class": "FileStreamSink", "file": str(self.target), "topics": "connected"}
        files = [
            _write(home / "worker.properties", worker),
            _write(home / "source.properties", {"name": "lines-in", "tasks.max": "1", **source}),
            _write(home / "sink.properties", {"name": "lines-out", "tasks.max": "1", **sink}),
        ]
        command = java("org.apache.kafka.connect.cli.ConnectStandalone", heap="384M")
        self.process = Watched([*command, *map(str, files)], home / "connect.out")

    def written(self) -> list[str]:
        return self.target.read_text().splitlines() if self.target.exists() else []

    def await_lines(self, count: int) -> None:
        def there() -> bool:
            self.process.check()
            return len(self.written()) >= count

        until(there, f"{count} lines", 180)


def _write(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def test_a_worker_copies_a_file_and_goes_on_after_a_restart(cluster: SecuredCluster, tmp_path: Path) -> None:
    cluster.create("connected", partitions=1)
    cluster.allow(WORKER.user, "--producer", "--topic", "connected")
    cluster.allow(WORKER.user, "--consumer", "--topic", "connected", "--group", "connect-lines-out")
    lines = [f"line {number}" for number in range(1000)]
    for begin, end in ((0, 500), (500, 1000)):
        with (tmp_path / "source.txt").open("a") as file:
            file.writelines(f"{line}\n" for line in lines[begin:end])
        connect = Connect(tmp_path, cluster)
        try:
            connect.await_lines(end)
        finally:
            connect.process.stop()
        assert connect.written() == lines[:end]


def test_a_worker_without_permission_says_which(cluster: SecuredCluster, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("one\n")
    cluster.tool("AclCommand", "--remove", "--force", "--topic", "connected")
    connect = Connect(tmp_path, cluster)
    try:
        until(
            lambda: "TopicAuthorizationException" in connect.process.log.read_text(),
            "the worker tells of it",
            180,
        )
    finally:
        connect.process.kill()  # Asked to stop, it would go on trying to send for a while.

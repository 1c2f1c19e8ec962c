"""A real ZooKeeper server for tests.

Owns one JVM running QuorumPeerMain in a directory, on a free loopback port, and the jars it needs: those
inside an installed pyspark, or else those Maven fetches once into the user's cache. Nothing outlives the
`with` block, nor the program, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from headrace.testing.leash import let_go, start_on_leash

VERSION = "3.9.4"
_START_SECONDS = 60.0
_PORT_ATTEMPTS = 5

# metrics-core and snappy-java are `provided` in ZooKeeper's own pom, yet the server needs them to start.
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headrace</groupId><artifactId>zookeeper-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>{VERSION}</version>
      <exclusions><exclusion><groupId>ch.qos.logback</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
    <dependency>
      <groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.2.30</version>
    </dependency>
    <dependency>
      <groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.7</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>2.0.13</version>
    </dependency>
  </dependencies>
</project>
"""


class ZooKeeperUnavailableError(RuntimeError):
    """ZooKeeper could not be found or started; the message says what is missing and what to do."""


def find_jars() -> Path:
    """The directory with ZooKeeper's server jar and all it needs, fetched with Maven if not yet here."""
    pyspark = importlib.util.find_spec("pyspark")
    for location in (pyspark.submodule_search_locations or []) if pyspark else []:
        jars = Path(location) / "jars"
        if any(jars.glob("zookeeper-[0-9]*.jar")):
            return jars
    return _jars_from_maven()


def _jars_from_maven() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    cache.mkdir(parents=True, exist_ok=True)
    jars = cache / f"zookeeper-{VERSION}"
    # Tests run in several processes: one fetches, the others wait for it.
    with (cache / f"zookeeper-{VERSION}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if jars.is_dir():
            return jars
        mvn = shutil.which("mvn")
        if mvn is None:
            raise ZooKeeperUnavailableError(
                "ZooKeeper's jars are neither in an installed pyspark nor in the cache: "
                "install Maven (mvn) or pyspark."
            )
        work = cache / f"zookeeper-{VERSION}.fetch"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "pom.xml").write_text(_POM)
        fetched = subprocess.run(
            [
                mvn,
                "-q",
                "-B",
                "dependency:copy-dependencies",
                "-DoutputDirectory=jars",
                "-DincludeScope=runtime",
            ],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if fetched.returncode != 0:
            detail = (fetched.stdout or fetched.stderr).strip().splitlines()
            raise ZooKeeperUnavailableError(
                f"Maven could not fetch ZooKeeper {VERSION}: {detail[0] if detail else 'no reason given'}."
            )
        (work / "jars").rename(jars)
        shutil.rmtree(work)
    return jars


class ZooKeeperServer:
    """One ZooKeeper server; a context manager. `directory` keeps its data and its log, `zookeeper.log`.

    `member` makes it one of an ensemble: its number, and the lines of the settings that name all members. `settings` are
    further lines of zoo.cfg, `options` further options of the JVM.
    """

    def __init__(
        self,
        directory: Path,
        *,
        tick_ms: int = 500,
        min_session_ms: int = 1000,
        member: tuple[int, str] | None = None,
        settings: str = "",
        options: Sequence[str] = (),
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._options = options
        self._tick_ms = tick_ms
        self._min_session_ms = min_session_ms
        self._member = member
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def connect_string(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start and wait until the server answers; a later start uses the same port and data as the first."""
        if self._process is not None:
            raise RuntimeError("This ZooKeeper server is already running.")
        java = shutil.which("java")
        if java is None:
            raise ZooKeeperUnavailableError(
                "ZooKeeper needs Java, and no `java` is on the PATH: install a Java 11+ runtime."
            )
        jars = find_jars()
        if self.port:
            self._run(java, jars)
            return
        # Another process can take the port between our finding it free and ZooKeeper's binding it.
        for attempt in range(_PORT_ATTEMPTS):
            self.port = free_port()
            try:
                self._run(java, jars)
                return
            except ZooKeeperUnavailableError:
                if attempt == _PORT_ATTEMPTS - 1 or "BindException" not in self._log():
                    raise

    def _run(self, java: str, jars: Path) -> None:
        data = self._directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        config = self._directory / "zoo.cfg"
        config.write_text(
            f"dataDir={data}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\ntickTime={self._tick_ms}\n"
            f"minSessionTimeout={self._min_session_ms}\nmaxClientCnxns=0\nadmin.enableServer=false\n"
            "4lw.commands.whitelist=srvr\n" + (self._member[1] if self._member else "") + self._settings
        )
        if self._member:
            (data / "myid").write_text(str(self._member[0]))
        with (self._directory / "zookeeper.log").open("wb") as log:
            self._process = start_on_leash(
                [
                    java,
                    "-Xmx256m",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                    "-Dzookeeper.jmx.log4j.disable=true",
                    *self._options,
                    "-cp",
                    f"{jars}/*",
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    str(config),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise ZooKeeperUnavailableError(
                    f"ZooKeeper ended with status {process.returncode} while starting; "
                    f"see {self._directory}/zookeeper.log."
                )
            answer = self._ask(b"srvr")
            # A member that finds no quorum says that it does not serve; it is up all the same.
            if b"Mode:" in answer or (self._member and b"not currently serving" in answer):
                return
            time.sleep(0.05)
        raise ZooKeeperUnavailableError(
            f"ZooKeeper did not answer within {_START_SECONDS:.0f} s; see {self._directory}/zookeeper.log."
        )

    def _ask(self, word: bytes) -> bytes:
        answer = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection,
        ):
            connection.sendall(word)
            while piece := connection.recv(4096):
                answer += piece
        return answer

    def _log(self) -> str:
        return (self._directory / "zookeeper.log").read_text(errors="replace")

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing answers, until `resume()`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise RuntimeError("This ZooKeeper server is not running.")
        self._process.send_signal(number)

    def kill(self) -> None:
        """End the server at once, as a crash would. Does nothing when it is not running."""
        if self._process is not None:
            self._process.kill()
            self._ended(self._process)

    def stop(self) -> None:
        """End the server in good order. Does nothing when it is not running."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._ended(self._process)

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        let_go(process)
        self._process = None

    def __enter__(self) -> ZooKeeperServer:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class ZooKeeperEnsemble:
    """`size` servers that make one ZooKeeper; a lone one needs no quorum. A context manager."""

    def __init__(self, directory: Path, size: int = 3) -> None:
        members: list[tuple[int, str] | None] = [None]
        if size > 1:
            lines = "".join(
                f"server.{number}=127.0.0.1:{free_port()}:{free_port()}\n" for number in range(1, size + 1)
            )
            members = [(number, f"initLimit=20\nsyncLimit=10\n{lines}") for number in range(1, size + 1)]
        self.servers = [
            ZooKeeperServer(directory / str(number), member=member)
            for number, member in enumerate(members, start=1)
        ]

    @property
    def connect_string(self) -> str:
        return ",".join(server.connect_string for server in self.servers)

    def start(self) -> None:
        for server in self.servers:
            server.start()

    def heal(self) -> None:
        """Start those that do not run and wake those that sleep."""
        for server in self.servers:
            if server.running:
                server.resume()
            else:
                server.start()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def __enter__(self) -> ZooKeeperEnsemble:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

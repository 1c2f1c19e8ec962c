"""What benchmarks and interoperability programs need from the machine: packages, Kafka's jars, programs.

Each `need_…` function leaves the thing in place or ends with one sentence that names what is missing.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build"
# The one place that names the version of Apache Kafka; the build file takes it from here.
KAFKA_VERSION = "4.3.0"


class Missing(Exception):
    """Something that this machine lacks and that could not be installed; the message says what and how."""


@dataclass(frozen=True, slots=True)
class Need:
    """A command or a file, and the Debian package that brings it."""

    what: str
    package: str

    def present(self) -> bool:
        return Path(self.what).exists() if self.what.startswith("/") else shutil.which(self.what) is not None


CC = Need("cc", "gcc")
LIBC = Need("/usr/include/stdlib.h", "libc6-dev")
LIBRDKAFKA = Need("/usr/include/librdkafka/rdkafka.h", "librdkafka-dev")
LIBSSL = Need("/usr/include/openssl/ssl.h", "libssl-dev")
HIREDIS = Need("/usr/include/hiredis/hiredis.h", "libhiredis-dev")
JAVA = Need("java", "default-jdk-headless")
MAVEN = Need("mvn", "maven")
NODE = Need("node", "nodejs")
NPM = Need("npm", "npm")
KCAT = Need("kcat", "kcat")
REDIS = Need("redis-server", "redis-server")
NATS = Need("nats-server", "nats-server")
RABBITMQ = Need("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")


def run(
    command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None, limit: float = 600
) -> str:
    """Runs a set-up command to its end and returns what it printed; its failure is a Missing
    with the last lines.
    """
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{' '.join(command)} failed: {error}") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-12:])
        raise Missing(f"{' '.join(command)} failed:\n{tail}")
    return done.stdout


def need_packages(needs: Iterable[Need]) -> None:
    """Installs with apt what is missing, when this is root on Debian; otherwise names it."""
    missing = [need for need in needs if not need.present()]
    if not missing:
        return
    packages = sorted({need.package for need in missing})
    by_hand = f"install what is missing and run this again: apt-get install {' '.join(packages)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(by_hand)
    print(f"installing with apt-get: {' '.join(packages)}", flush=True)
    # The run level keeps packaged services from starting: the benchmarks start their own.
    env = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    run(["apt-get", "update", "-q"], env=env)
    run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages], env=env)
    still = [need.what for need in missing if not need.present()]
    if still:
        raise Missing(f"apt-get installed {' '.join(packages)}, yet {', '.join(still)} is not there")


def need_go(oldest: tuple[int, int] = (1, 24)) -> None:
    """Go new enough for current client libraries; Debian's own may be older."""
    wanted = ".".join(map(str, oldest))
    if shutil.which("go") is None:
        raise Missing(f"install Go {wanted} or newer (https://go.dev/dl/) and put it on the PATH")
    found = re.search(r"go(\d+)\.(\d+)", run(["go", "version"]))
    if found is None or (int(found[1]), int(found[2])) < oldest:
        raise Missing(
            f"Go {wanted} or newer is needed (https://go.dev/dl/), this is {found[0] if found else 'unknown'}"
        )


def need_kafka(version: str = KAFKA_VERSION) -> str:
    """Apache Kafka's jars from Maven; returns the class path of the broker and the tools.

    Each version has its own folder, so that jars of two versions never meet on one class path.
    """
    pom = HERE / "kafka" / "pom.xml"
    libraries = need_jars(pom, BUILD / "kafka" / version, f"-Dkafka.version={version}")
    return f"{libraries}/*"


def need_client_jar(version: str) -> Path:
    """Kafka's client library alone, which may be newer than the newest broker on Maven."""
    jar = BUILD / f"kafka-clients-{version}.jar"
    if not jar.exists():
        need_packages([JAVA, MAVEN])
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
        artifact = f"-Dartifact=org.apache.kafka:kafka-clients:{version}"
        run(["mvn", "-q", "-B", goal, artifact, f"-DoutputDirectory={BUILD}"], limit=900)
    return jar


def need_spark_connector() -> str:
    """The jars of Spark's own Kafka connector from Maven, as spark.jars takes them."""
    libraries = need_jars(HERE / "spark" / "pom.xml", BUILD / "spark" / "libs")
    return ",".join(str(jar) for jar in sorted(libraries.glob("*.jar")))


def need_jars(pom: Path, libraries: Path, *properties: str) -> Path:
    """The folder with the jars that the build file asks for: complete, or not there at all."""
    need_packages([JAVA] if libraries.exists() else [JAVA, MAVEN])
    if not libraries.exists():
        print(f"downloading the jars of {pom} from Maven into {libraries}", flush=True)
        unfinished = libraries.with_name(f"{libraries.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        command = ["mvn", "-q", "-B", "-f", str(pom), goal, f"-DoutputDirectory={unfinished}", *properties]
        run(command, limit=900)
        unfinished.rename(libraries)
    return libraries


def java(*arguments: str, heap: str = "256M", version: str = KAFKA_VERSION) -> list[str]:
    """The command line of one of Kafka's tools: quick to start, quiet unless something is wrong."""
    log4j = HERE / "kafka" / "log4j2.properties"
    options = [f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log4j}"]
    return ["java", *options, "-cp", need_kafka(version), *arguments]


def need_load_program(name: str) -> Path:
    """One of the compiled load programs of bench/load, made now if its sources are newer."""
    if name in ("kafka-load", "redis-load"):
        need_packages([CC, LIBC, *([LIBRDKAFKA, LIBSSL] if name == "kafka-load" else [HIREDIS])])
    else:
        need_go()
    need_packages([Need("make", "make")])
    if not (BUILD / name).exists():
        print(f"building the load program {name}", flush=True)
    run(["make", "-s", "-C", str(HERE / "load"), f"OUT={BUILD}", f"{BUILD}/{name}"], limit=900)
    return BUILD / name

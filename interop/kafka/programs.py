"""The client programs of other languages, built on first use and run to their end."""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.provision import JAVA, NODE, NPM, Need, java, need_go, need_kafka, need_packages, run
from interop.kafka.dataset import Record, from_json, in_order

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
EVERY_COMPRESSION = ("none", "gzip", "snappy", "lz4", "zstd")


class ProgramFailed(AssertionError):
    """A program that ended badly, with what it said."""


@dataclass(frozen=True, slots=True)
class Program:
    """A client program: `write`, `read`, `offsets` and `admin`, each given the bootstrap address."""

    name: str
    compressions: tuple[str, ...] = EVERY_COMPRESSION
    null_headers: bool = True

    def run(
        self,
        *arguments: str,
        stdin: str | None = None,
        release: str = "",
        env: Mapping[str, str] | None = None,
        limit: float = 90,
    ) -> str:
        """Runs it and returns its output; `release` makes it speak the protocol of that Kafka release, `env` says
        how to log in.
        """
        __tracebackhide__ = True
        own = {"MAX_KAFKA_VERSION": release} if release else {}
        return finish(
            [*_command(self.name), *arguments], stdin=stdin, env={**own, **(env or {})}, limit=limit
        )

    def start(self, *arguments: str, errors: Path) -> subprocess.Popen[str]:
        """Starts it and returns at once; its output is the caller's to read, its standard error goes to a file."""
        with errors.open("w") as file:
            return subprocess.Popen(
                [*_command(self.name), *arguments], stdout=subprocess.PIPE, stderr=file, text=True
            )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts it and leaves it at work; its output is read by the caller."""
        return subprocess.Popen(
            [*_command(self.name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Iterable[Record],
        compression: str = "none",
        release: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        lines = "".join(json.dumps(record.to_json()) + "\n" for record in records)
        self.run("write", bootstrap, topic, compression, stdin=lines, release=release, env=env)

    def read(
        self,
        bootstrap: str,
        topics: Iterable[str],
        release: str = "",
        env: Mapping[str, str] | None = None,
    ) -> dict[str, list[Record]]:
        """The records of each topic, by partition and offset."""
        topics = list(topics)
        found: dict[str, list[Record]] = {topic: [] for topic in topics}
        for line in self.run("read", bootstrap, *topics, release=release, env=env).splitlines():
            topic, record = from_json(json.loads(line))
            found[topic].append(record)
        return {topic: in_order(records) for topic, records in found.items()}

    def offsets(self, bootstrap: str, topic: str, which: str) -> dict[int, int]:
        answer = json.loads(self.run("offsets", bootstrap, topic, which))
        return {int(partition): offset for partition, offset in answer.items()}


JAVA_CLIENT = Program("java")
FRANZ = Program("franz")
SARAMA = Program("sarama")
# kafkajs brings gzip, and has snappy as a plug-in in JavaScript; the other codecs need native builds.
# It cannot write a header whose value is null.
KAFKAJS = Program("kafkajs", ("none", "gzip", "snappy"), null_headers=False)
PROGRAMS = (JAVA_CLIENT, FRANZ, SARAMA, KAFKAJS)


def finish(
    command: list[str], *, stdin: str | None = None, env: dict[str, str] | None = None, limit: float = 90
) -> str:
    """Runs a program to its end and returns its output; failure is an assertion with what it said."""
    __tracebackhide__ = True
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, **(env or {})},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{' '.join(command)} did not end within {limit:g} s") from error
    if done.returncode != 0:
        said = f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
        raise ProgramFailed(f"{' '.join(command)} ended with {done.returncode}:\n{said}")
    return done.stdout


@functools.cache
def _command(name: str) -> tuple[str, ...]:
    """The command line of a program, built first if its sources are newer."""
    BUILD.mkdir(exist_ok=True)
    if name == "java":
        need_packages([JAVA, Need("javac", "default-jdk-headless")])
        classes = BUILD / "java"
        classes.mkdir(exist_ok=True)
        run(
            [
                "javac",
                "-d",
                str(classes),
                "-cp",
                need_kafka(),
                *map(str, sorted((HERE / "java").glob("*.java"))),
            ]
        )
        command = java("Interop")
        command[command.index("-cp") + 1] += f":{classes}"
        return tuple(command)
    if name == "kafkajs":
        need_packages([NODE, NPM])
        place = BUILD / "js"
        place.mkdir(exist_ok=True)
        for file in ("package.json", "package-lock.json", "interop.js"):
            shutil.copy(HERE / "js" / file, place / file)
        if not (place / "node_modules" / "kafkajs").exists():
            run(["npm", "ci", "--no-audit", "--no-fund"], cwd=place)
        return ("node", str(place / "interop.js"))
    need_go()
    run(["go", "build", "-o", str(BUILD / name), f"./{name}"], cwd=HERE / "go")
    return (str(BUILD / name),)

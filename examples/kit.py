"""What the examples share: their options, a broker unless one is named, headrace's commands, and a directory for what they make."""

import argparse
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.client import Consumer, Record
from headrace.testing.process import BrokerProcess

HERE = Path(__file__).parent
MARK = ".headrace-example"


@dataclass(frozen=True)
class Stage:
    """Where an example plays."""

    bootstrap: str
    out: Path
    sizes: argparse.Namespace

    def headrace(self, *arguments: str | Path) -> str:
        """Run a command of headrace's to its end; returns what it printed."""
        done = subprocess.run(self._command(*arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(
                f"headrace {' '.join(map(str, arguments))} failed:\n{done.stderr or done.stdout}"
            )
        return done.stdout

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a command that goes on; whoever started it stops it."""
        return subprocess.Popen(self._command(*arguments), stdout=subprocess.DEVNULL, text=True)

    def _command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "headrace.cli", *map(str, arguments), "-b", self.bootstrap]

    def topic(self, name: str, partitions: int = 3) -> None:
        self.headrace("topics", "create", name, "--partitions", str(partitions))

    def project(self, example: str, name: str = "pipeline") -> Path:
        """A pipeline's project in the output directory, with the example's transformations."""
        project = self.out / name
        shutil.copytree(HERE / example / "transformations", project / "transformations", dirs_exist_ok=True)
        (project / "spark-pipeline.yml").write_text(
            f"name: {example}\nstorage: {(project / 'storage').as_uri()}\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )
        return project

    def records(self, topic: str) -> list[Record]:
        """Everything a topic holds now, of committed transactions only."""
        with Consumer(
            self.bootstrap, delivery="exactly_once", group_id=f"look-{uuid.uuid4().hex[:8]}"
        ) as consumer:
            ends = {each: consumer.range_of(each)[1] for each in consumer.partitions_of(topic)}
            consumer.assign(dict.fromkeys(ends, 0))
            found: list[Record] = []
            while any((consumer.position(each) or 0) < end for each, end in ends.items()):
                found += consumer.poll(0.2)
        return found

    def count(self, topic: str) -> int:
        """How many records were ever written to a topic; with transactions, their markers too."""
        with Consumer(self.bootstrap) as consumer:
            return sum(consumer.range_of(each)[1] for each in consumer.partitions_of(topic))

    def rows(self, topic: str) -> list[Any]:
        """The same as JSON values."""
        return [json.loads(record.value) for record in self.records(topic) if record.value is not None]


@contextmanager
def stage(name: str, description: str | None, **sizes: int) -> Iterator[Stage]:
    """An example's options, and a broker of its own unless --bootstrap-server names one."""
    parser = argparse.ArgumentParser(prog=f"python -m examples.{name}", description=description)
    parser.add_argument(
        "-b", "--bootstrap-server", help="brokers to use [a broker of its own, which goes at the end]"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out") / name, help=f"for what it makes [out/{name}]"
    )
    for size, value in sizes.items():
        parser.add_argument(f"--{size.replace('_', '-')}", type=_size, default=value, help=f"[{value:,}]")
    given = parser.parse_args()
    out = _emptied(given.out.absolute())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with _broker(given.bootstrap_server) as bootstrap:
            yield Stage(bootstrap, out, given)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


@contextmanager
def _broker(named: str | None) -> Iterator[str]:
    if named:
        yield named
        return
    with tempfile.TemporaryDirectory() as data:
        broker = BrokerProcess(Path(data) / "data")
        try:
            yield broker.start().bootstrap
        finally:
            logging.disable()  # a client that an interruption has left open would complain of the broker's end
            broker.stop()


def _emptied(out: Path) -> Path:
    """The directory, without what an earlier run left; whatever else is in it is not ours to delete."""
    is_ours = (out / MARK).exists() or (out.is_dir() and not any(out.iterdir()))
    if out.exists() and not is_ours:
        sys.exit(f"{out} is not an example's directory and would be deleted: name another with --out.")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()
    return out


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def tell(stage: Stage, **facts: object) -> None:
    """Print what came of it, and keep it for programs."""
    for name, value in facts.items():
        print(
            f"  {name.replace('_', ' ')}: {value:,}"
            if type(value) is int
            else f"  {name.replace('_', ' ')}: {value}"
        )
    (stage.out / "facts.json").write_text(json.dumps(facts, default=str))
    print(f"  files: {os.path.relpath(stage.out)}")

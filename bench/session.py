"""One run of the benchmarks: its sizes, its working directory and the order in which systems take turns."""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import Broken, drop_from_page_cache
from bench.rows import Row, Sample, figure
from bench.systems import Headrace, Kafka, Running, System
from bench.systems.kafka_protocol import KafkaProtocolSystem, RunningKafka

WORK = Path(__file__).resolve().parent / "work"
GB = 1_000_000_000

Measure = Callable[[Running], dict[str, Sample]]


@dataclass(slots=True)
class Session:
    """What a part needs to measure. Sizes are given for a full run and shrink with `scale`;
    rounds shrink in a quick run, and never exceed `most_rounds`.
    """

    scale: float = 1.0
    quick: bool = False
    most_rounds: int | None = None
    work: Path = WORK
    say: Callable[[str], None] = print
    only: frozenset[str] = frozenset()
    _backlogs: dict[str, Path] = field(default_factory=dict)
    _serial: int = 0

    def size(self, full: int, least: int = 1) -> int:
        """A number of records, bytes or partitions of the full run, brought to this run's scale."""
        return max(int(full * self.scale), least)

    def rounds(self, full: int) -> int:
        limit = 2 if self.quick else full
        return min(full, limit, self.most_rounds or full)

    def seconds(self, full: int) -> int:
        return max(2, full // 4) if self.quick else full

    def kafka_systems(self) -> list[KafkaProtocolSystem]:
        """Headrace and Apache Kafka, or the one of them that was asked for."""
        both: list[KafkaProtocolSystem] = [Headrace(), Kafka()]
        return [system for system in both if not self.only or system.name in self.only]

    def others(self, systems: Sequence[System]) -> list[System]:
        return [system for system in systems if not self.only or system.name in self.only]

    def fresh(self, system: System, purpose: str) -> Path:
        """An empty place for a data directory of this system."""
        return self.fresh_place(system.name, purpose)

    def fresh_place(self, name: str, purpose: str) -> Path:
        self._serial += 1
        place = self.work / f"{self._serial:02d}-{purpose}-{name}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place / "data"

    @contextmanager
    def running(
        self, systems: Sequence[KafkaProtocolSystem], purpose: str
    ) -> Iterator[dict[str, RunningKafka]]:
        """Starts each system on fresh data; all are up at once, and only the one being measured has work."""
        with ExitStack() as stack:
            started: dict[str, RunningKafka] = {}
            for system in systems:
                system.prepare()
                data = self.fresh(system, purpose)
                stack.callback(shutil.rmtree, data.parent, ignore_errors=True)
                running = system.start(data)
                stack.enter_context(running)
                started[system.name] = running
            yield started

    def compare(
        self,
        running: Mapping[str, Running],
        rows: Sequence[Row],
        measure: Measure,
        *,
        rounds: int,
        warm_up: bool = True,
    ) -> None:
        """Fills the rows: each system is measured once a round, the one that goes first changing every round.

        `measure` returns a sample for each row id. The warm-up is one round that does not count.
        """
        taken: dict[str, dict[str, list[Sample]]] = {row.id: defaultdict(list) for row in rows}
        names = list(running)
        if warm_up:
            for name in names:
                measure(running[name])
        for number in range(rounds):
            for name in names if number % 2 == 0 else reversed(names):
                for row_id, sample in measure(running[name]).items():
                    taken[row_id][name].append(sample)
                    self.say(f"  {row_id} {number + 1}/{rounds} {name}: {sample.value:,.6g}")
        for row in rows:
            row.figures = {name: figure(taken[row.id][name]) for name in names}

    def backlog_gigabytes(self) -> float:
        """The backlog's size: 20 GB in a full run."""
        return max(20 * self.scale, 0.2)

    def backlog_records(self) -> int:
        return int(self.backlog_gigabytes() * GB) // 1024

    def backlog(self, system: KafkaProtocolSystem) -> Path:
        """A cleanly stopped data directory, out of the page cache, with a topic `backlog` of 20 GB (scaled).

        It is one partition, written once a run, shared by the parts that need it, and removed in the end.
        """
        gigabytes = self.backlog_gigabytes()
        if system.name in self._backlogs:
            return self._backlogs[system.name]
        need = gigabytes * GB * 1.1
        self.work.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(self.work).free < need:
            raise Broken(
                f"{self.work} needs {need / GB:.0f} GB free for a backlog of {gigabytes:g} GB; use --scale"
            )
        system.prepare()
        data = self.fresh(system, "backlog")
        self.say(f"  writing a backlog of {gigabytes:g} GB with {system.name}")
        with system.start(data) as running:
            running.create("backlog")
            running.load(
                "produce",
                topic="backlog",
                records=self.backlog_records(),
                size=1024,
                batch_bytes=65536,
                time_limit=1200,
            )
        drop_from_page_cache(data)
        self._backlogs[system.name] = data
        return data

    def close(self) -> None:
        """Removes what the run left on disk."""
        for data in self._backlogs.values():
            shutil.rmtree(data.parent, ignore_errors=True)
        self._backlogs.clear()

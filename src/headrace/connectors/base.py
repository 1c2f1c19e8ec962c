"""The interface of a connector: what the shipped ones are made of and what people's own derive from.

A source brings rows to a topic, a sink takes them away from one. Instances are made on the driver and pickled to
the tasks, so a connection is opened in ``open`` or where it is used, never in ``__init__``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headrace.connectors.topic import METADATA, TopicOut

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Delivery = Literal["exactly once", "at least once"]
Offset = dict[str, Any]
"""A place in a source: what JSON can hold, made by the source and kept in Spark's checkpoint."""


class Connector:
    """What sources and sinks share. ``name`` is the connector's, which stays the same over restarts."""

    direction: ClassVar[Literal["source", "sink"]]
    delivery: ClassVar[Delivery]
    summary: ClassVar[str]
    Settings: ClassVar[type]

    def __init__(self, name: str, settings: Any) -> None:
        self.name = name
        self.settings = settings

    def check(self) -> None:
        """Look whether the other side is as the settings say; ConnectorError if not. Changes nothing."""

    def identity(self) -> Mapping[str, object]:
        """The settings that say where the data is: when they change, a checkpoint no longer fits."""
        return {}


class Source(Connector, ABC):
    """Brings rows to a topic: a PolledSource, a SparkSource or a Service."""

    direction = "source"


class SparkSource(Source):
    """A source that Spark can read by itself."""

    @abstractmethod
    def frame(self, spark: SparkSession) -> DataFrame:
        """A streaming DataFrame; its columns become the fields of the records."""


class Running(ABC):
    """A connector that was started."""

    @abstractmethod
    def is_active(self) -> bool: ...

    @abstractmethod
    def failure(self) -> Exception | None:
        """Why it ended by itself, if it failed."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """What there is to say about it now: ``rows`` so far, and more."""

    @abstractmethod
    def stop(self) -> None: ...


class Service(Source):
    """A source that runs beside Spark and writes to the topic by itself, because a caller waits for its answer."""

    @abstractmethod
    def start(self, topic: TopicOut) -> Running: ...


@dataclass(frozen=True, slots=True)
class Raw:
    """A row with a value that is sent unchanged; the fields are there for the key."""

    value: bytes
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class BadRow:
    """Yielded in place of a row that cannot be read: it fails the connector or becomes a dead letter."""

    raw: bytes
    reason: str


Row = Mapping[str, object] | Raw | BadRow


class PolledSource(Source):
    """A source that knows how far it could read, and can read the same stretch again.

    ``latest`` runs on the driver and ``rows`` in tasks. If ``rows`` gives the same rows for the same stretch
    whenever it is asked, the topic gets each of them exactly once.
    """

    @abstractmethod
    def start(self) -> Offset:
        """Where a new connector begins."""

    @abstractmethod
    def latest(self, after: Offset) -> Offset:
        """How far one batch that begins at ``after`` may read; ``after`` itself when there is nothing new."""

    @abstractmethod
    def rows(self, after: Offset, until: Offset) -> Iterable[Row]:
        """The rows of a stretch: mappings, which become JSON, or values as they are."""

    def split(self, after: Offset, until: Offset) -> Sequence[tuple[Offset, Offset]]:
        """Stretches that tasks may read at the same time."""
        return [(after, until)]

    def until_now(self) -> None:
        """Asked to stop at what there is now (``--once``): ``latest`` must come to an end."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive records of one topic partition, in order, as columns.

    ``rows`` has the columns of METADATA and then the record's fields (or ``value`` when there is no schema). A
    record without a value (a tombstone) has ``_value`` null. ``first`` and ``next`` are offsets; ``next`` is one past the last.
    ``topic_id`` is None where the broker gives topics no ids.
    """

    topic: str
    partition: int
    first: int
    next: int
    rows: pa.RecordBatch
    topic_id: str | None = None

    @property
    def origin(self) -> str:
        """The topic by name and id, as targets keep it beside offsets: one that was deleted and made again is another,
        and its offsets begin anew.
        """
        return self.topic if self.topic_id is None else f"{self.topic}@{self.topic_id}"

    @property
    def fields(self) -> list[str]:
        return [name for name in self.rows.schema.names if name not in METADATA]


class Sink(Connector, ABC):
    """Takes chunks away. A chunk may come again after a failure, with other borders too: the target should know the
    offset up to which it has a partition of the chunk's ``origin``, and a sink that asks it writes exactly once.
    """

    direction = "sink"

    def check_schema(self, schema: StructType) -> None:
        """Look whether the target can take these fields (those of ``topic.schema``); ConnectorError if not. Changes nothing."""

    def prepare(self, schema: StructType) -> None:
        """On the driver, before the first batch; ``schema`` has the fields without the metadata."""

    def begin(self, batch: int) -> None:
        """On the driver, before each batch; what it sets on ``self`` reaches the tasks of the batch."""

    def open(self) -> None:
        """In a task, before its first chunk."""

    @abstractmethod
    def write(self, chunk: Chunk) -> None:
        """In a task, in the order of offsets.

        Rejected takes records out, and the chunk comes again without them; Unavailable makes it come again later,
        after ``close`` and ``open``.
        """

    def finish(self) -> object:
        """In a task, after its last chunk. What it returns must be picklable and reaches ``commit``."""
        return None

    def close(self) -> None:
        """In a task, at its end, also when it failed."""

    def commit(self, batch: int, written: Sequence[object]) -> None:
        """On the driver, when all tasks of a batch are done."""

    def stop(self) -> None:
        """On the driver, when the connector stops."""

"""A topic as the rest of a pipeline knows it: what was declared, and what provides its rows (see topics.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import DataFrame

from headrace.client.degrade.rules import Rule
from headrace.pipelines import expectations
from headrace.pipelines.expectations import Expectation

Query = Callable[[], DataFrame]
Mode = Literal["append", "update", "complete"]


class DeclaredTopic(ABC):
    def __init__(
        self,
        name: str,
        *,
        key: Sequence[str] = (),
        expect: Sequence[Expectation] = (),
        mode: Mode = "append",
        start: str = "earliest",
        dead_letter_topic: str | None = None,
        partitions: int | None = None,
        config: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        location: SourceCodeLocation,
    ) -> None:
        self.name = name
        self.key = tuple(key)
        self.expectations = tuple(expect)
        self.mode: Mode = mode
        self.start = start
        self.dead_letter_topic = dead_letter_topic
        self.partitions = partitions
        self.config = dict(config or {})
        self.options = dict(options or {})
        self.location = location
        self._flows: list[Query] = []

    @property
    def element_name(self) -> str:
        """The topic's name where Spark wants an identifier."""
        return "".join(letter if letter.isalnum() else "_" for letter in self.name)

    @property
    def flows(self) -> int:
        """How many flows of this pipeline write the topic."""
        return len(self._flows)

    @property
    def routes_dead_letters(self) -> bool:
        """Whether flows that write the topic may send rows to its dead-letter topic instead."""
        return bool(self._flows) and bool(expectations.of_kind(self.expectations, "dead_letter"))

    @property
    @abstractmethod
    def has_declared_schema(self) -> bool: ...

    @abstractmethod
    def add_flow(self, name: str, query: Query, location: SourceCodeLocation) -> None:
        """Have the rows of a query written to the topic."""

    @abstractmethod
    def stream(self, *, record: bool = False, degrade: Sequence[Rule] | None = None) -> DataFrame:
        """The rows of the topic as they come. ``record`` adds the column ``_record``: a struct of topic,
        partition, offset, timestamp, key and headers. ``degrade`` has rules for doing less under load."""

    @abstractmethod
    def unwatched_stream(self, *, record: bool = False) -> DataFrame:
        """The same, without a flow for the dead letters."""

    @abstractmethod
    def letters(self) -> DataFrame:
        """The records of the topic that cannot be used, as records for its dead-letter topic."""

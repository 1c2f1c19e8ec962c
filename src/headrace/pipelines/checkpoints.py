"""The checkpoints of a project: one directory per flow and version under its storage, each with a note of what
the query was, so that a query that has changed too much is explained before it fails.
"""

from __future__ import annotations

import json
from typing import Any, cast

from pyspark.sql import SparkSession

from headrace.pipelines.errors import Problem
from headrace.pipelines.fingerprint import Fingerprint, difference, fingerprint
from headrace.pipelines.resolve import Step

_NOTE = "headrace.json"
_METADATA = "metadata"  # Spark's own


class Checkpoints:
    def __init__(self, spark: SparkSession, home: str) -> None:
        self._spark: Any = spark
        self._home = home  # of one version

    def location(self, step: Step) -> str:
        """One directory for each flow of each output."""
        return f"{self._home}/_checkpoints/{step.target.name}/{step.name}/0"

    def problem(self, step: Step) -> str | None:
        """Why a flow cannot go on from its checkpoint, and what to do; None when it can or has none."""
        before = self._note(step)
        if before is None:
            return None
        why = difference(before, fingerprint(step.rows))
        if why is None:
            return None
        return (
            f"Flow '{step.name}' cannot go on from its checkpoint: {why}. Spark cannot carry that over: build a new version "
            f"of the output with 'headrace pipeline replay --version NEW', or begin this flow anew, into the same output, "
            f"with 'headrace pipeline run --reset {step.name}'."
        )

    def problems(self, steps: list[Step]) -> list[Problem]:
        return [Problem(text) for step in steps if step.rows.isStreaming and (text := self.problem(step))]

    def remember(self, step: Step) -> None:
        """Note what the query is, for the next run to compare."""
        system, path = self._place(f"{self.location(step)}/{_NOTE}")
        out = system.create(path, True)
        try:
            out.write(bytearray(json.dumps(fingerprint(step.rows)).encode()))
        finally:
            out.close()

    def reset(self, step: Step) -> None:
        system, path = self._place(self.location(step))
        system.delete(path, True)

    def query_id(self, step: Step) -> str | None:
        """The id that Spark gave the flow's query; None when it has never run."""
        found = self._read(step, _METADATA)
        return None if found is None else str(found["id"])

    def _note(self, step: Step) -> Fingerprint | None:
        return cast("Fingerprint | None", self._read(step, _NOTE))

    def _read(self, step: Step, file: str) -> Any:
        """What a file of the checkpoint holds as JSON; None when it is not there."""
        system, path = self._place(f"{self.location(step)}/{file}")
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            return json.loads(bytes(stream.readAllBytes()))
        finally:
            stream.close()

    def _place(self, name: str) -> tuple[Any, Any]:
        path = self._spark._jvm.org.apache.hadoop.fs.Path(name)
        return path.getFileSystem(self._spark._jsc.hadoopConfiguration()), path

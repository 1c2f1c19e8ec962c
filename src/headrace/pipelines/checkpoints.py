"""The checkpoints of a project: one directory per flow and version under its storage, each with a note of what
the query was, so that a query that has changed too much is explained before it fails.
"""

from __future__ import annotations

import json
from typing import Any, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headrace.pipelines.errors import PipelineError, Problem
from headrace.pipelines.fingerprint import Fingerprint, difference, fingerprint
from headrace.pipelines.resolve import Step

_NOTE = "headrace.json"
_METADATA, _OFFSETS = "metadata", "offsets"  # Spark's own
_WRONG_CHECKSUM = "org.apache.hadoop.fs.ChecksumException"


class Damaged(Exception):
    """A file of a checkpoint does not hold what was written to it."""


class Checkpoints:
    def __init__(self, spark: SparkSession, home: str) -> None:
        self._spark: Any = spark
        self._home = home  # of one version

    def location(self, step: Step) -> str:
        """One directory for each flow of each output."""
        return f"{self._home}/_checkpoints/{step.target.name}/{step.name}/0"

    def problem(self, step: Step) -> str | None:
        """Why a flow cannot continue from its checkpoint, and what to do; None when it can or has none."""
        try:
            before = self._note(step)
        except Damaged as damaged:
            if not self._has_begun(step):
                return None  # nothing was read yet, so any query may begin here
            return (
                f"Flow '{step.name}' cannot be compared with its checkpoint: {damaged}. If its query is as it was in the "
                f"last run, delete that file and run again; if it has changed, begin the flow anew, into the same output, "
                f"with 'headrace pipeline run --reset {step.name}'."
            )
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
        """Note what the query is, for the next run to compare. A note that fits is left alone: on some storage,
        replacing a file means that for a moment there is none."""
        now = fingerprint(step.rows)
        try:
            if self._note(step) == now:
                return
        except Damaged:
            pass  # of a flow that has not begun, or `problem` had refused it
        # As Spark writes its own files here, on any storage: whole or not at all.
        streaming = self._spark._jvm.org.apache.spark.sql.execution.streaming
        _, directory = self._place(self.location(step))
        _, path = self._place(f"{self.location(step)}/{_NOTE}")
        files = streaming.checkpointing.CheckpointFileManager.create(
            directory, self._spark._jsc.hadoopConfiguration()
        )
        files.mkdirs(directory)
        out = files.createAtomic(path, True)
        try:
            out.write(bytearray(json.dumps(now).encode()))
        except BaseException:
            out.cancel()
            raise
        out.close()

    def reset(self, step: Step) -> None:
        system, path = self._place(self.location(step))
        system.delete(path, True)

    def query_id(self, step: Step) -> str | None:
        """The id that Spark gave the flow's query; None when it has never run."""
        try:
            found = self._read(step, _METADATA)
        except Damaged as damaged:
            raise PipelineError(
                f"Flow '{step.name}' cannot be continued: {damaged}. Delete the flow's checkpoint, {self.location(step)}, "
                "and what it has read is read again, into the same output."
            ) from damaged
        return None if found is None else str(found["id"])

    def _note(self, step: Step) -> Fingerprint | None:
        return cast("Fingerprint | None", self._read(step, _NOTE))

    def _read(self, step: Step, file: str) -> Any:
        """What a file of the checkpoint holds as JSON; None when it is not there, Damaged when its content is not
        what was written. Storage that does not answer proves nothing about the file, so no message says to delete it."""
        try:
            system, path = self._place(f"{self.location(step)}/{file}")
            if not system.exists(path):
                return None
            data = _content(system, path)
        except Py4JJavaError as error:
            name, java = f"{self.location(step)}/{file}", error.java_exception
            if java.getClass().getName() == _WRONG_CHECKSUM:
                raise Damaged(f"{name} is damaged") from error
            raise PipelineError(
                f"Flow '{step.name}' has a checkpoint that cannot be read now: {name}: {_first_line(java)}; "
                "try again when its storage can be read, and leave the file as it is."
            ) from error
        try:
            found = json.loads(data)
        except ValueError as error:
            raise Damaged(f"{path.toString()} is {'damaged' if data else 'empty'}") from error
        if not isinstance(found, dict):
            raise Damaged(f"{path.toString()} is damaged")
        return found

    def _has_begun(self, step: Step) -> bool:
        """Whether Spark has planned a batch here."""
        system, path = self._place(f"{self.location(step)}/{_OFFSETS}")
        return bool(system.exists(path) and len(system.listStatus(path)))

    def _place(self, name: str) -> tuple[Any, Any]:
        path = self._spark._jvm.org.apache.hadoop.fs.Path(name)
        return path.getFileSystem(self._spark._jsc.hadoopConfiguration()), path


def _content(system: Any, path: Any) -> bytes:
    stream = system.open(path)
    try:
        return bytes(stream.readAllBytes())
    finally:
        stream.close()


def _first_line(java: Any) -> str:
    """What a Java exception says, without its stack."""
    return str(java.toString()).partition("\n")[0].rstrip(".")

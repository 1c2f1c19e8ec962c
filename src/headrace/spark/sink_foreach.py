"""Writing exactly once from `foreachBatch`: the stream's own batch number names what was written.

Spark lets a Python sink be written in output mode append only. A stream in update mode writes from `foreachBatch`
instead, with the option exactlyOnce=true, and gets what the streaming sink gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from headrace.link.settings import SettingsError
from headrace.spark.sink import BATCH, StreamWriter


@dataclass(frozen=True)
class OfBatch(WriterCommitMessage):
    """What a task has to say, and the batch of the stream it worked for."""

    message: WriterCommitMessage
    batch: int


class ForeachBatchWriter(DataSourceArrowWriter):
    def __init__(self, stream: StreamWriter) -> None:
        self._stream = stream

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(BATCH)
        if batch is None:
            raise SettingsError(
                "exactlyOnce is for streams, and for writes inside foreachBatch: a batch job that runs again is a new job "
                "to Spark and writes again. Take the option away."
            )
        return OfBatch(self._stream.write(iterator), int(batch))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        wrapped = [message for message in messages if isinstance(message, OfBatch)]
        if wrapped:
            self._stream.commit([each.message for each in wrapped], wrapped[0].batch)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        wrapped = [message for message in messages if isinstance(message, OfBatch)]
        if wrapped:
            missing: list[WriterCommitMessage | None] = [None] * (len(messages) - len(wrapped))
            self._stream.abort([*(each.message for each in wrapped), *missing], wrapped[0].batch)

"""The data source `headrace`: what Spark asks of it, handed to the part that knows."""

from __future__ import annotations

import uuid

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.link.settings import SettingsError
from headrace.spark.options import ReadOptions, read_columns

_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
    "topicId": StringType(),
}
"""The official connector's schema, and the topic's id for those who ask for it."""


class HeadraceSource(DataSource):
    """Reads and writes the topics of Headrace or of any Kafka cluster."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._instance = str(uuid.uuid4())

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> StructType:
        return StructType([StructField(name, _TYPES[name]) for name in read_columns(self.options)])

    def reader(self, schema: StructType) -> DataSourceReader:
        from headrace.spark.batch import batch_reader

        self._refuse_other_schema(schema)
        return batch_reader(ReadOptions.of(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from headrace.spark.stream import StreamReader

        self._refuse_other_schema(schema)
        return StreamReader(ReadOptions.of(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from headrace.spark.sink_writers import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from headrace.spark.sink_writers import stream_writer

        return stream_writer(self.options, schema, overwrite, self._instance)

    def _refuse_other_schema(self, schema: StructType) -> None:
        """Spark asks with a schema of the user's, where there is one."""
        own = self.schema()
        if [(each.name, each.dataType) for each in schema] != [(each.name, each.dataType) for each in own]:
            raise SettingsError(
                "Kafka source has a fixed schema and cannot be set with a custom one: take .schema(…) away, and choose "
                "columns with the option 'columns' or decode them with DataFrame functions."
            )

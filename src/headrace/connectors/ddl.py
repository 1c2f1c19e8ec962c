"""``topic.schema`` as Spark's types, read without a running Spark, so that ``check`` can find its mistakes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headrace.nearest import nearest

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([A-Za-z_]\w*)|(\d+)|(.))", re.S)
_NAMES = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "INTEGER",
    "BIGINT",
    "LONG",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "ARRAY",
    "MAP",
    "STRUCT",
]


def parse(text: str) -> StructType:
    """``id BIGINT NOT NULL, tags ARRAY<STRING>``; ValueError with a sentence."""
    reader = _Reader(text)
    schema = reader.fields(end=None)
    names = schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"it has the field {twice[0]} twice")
    reserved = [name for name in names if name.startswith("_")]
    if reserved:
        raise ValueError(f"it has the field {reserved[0]}, but names with a leading _ are kept for metadata")
    return schema


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [match for match in _TOKEN.finditer(text) if match[0].strip()]
        self._at = 0

    def fields(self, end: str | None) -> StructType:
        from pyspark.sql.types import StructField, StructType

        fields = []
        while True:
            name = self._name()
            if self._peek() == ":":
                self._at += 1
            kind, nullable = self._type(name), True
            if self._peek().upper() == "NOT":
                self._at += 1
                self._expect("NULL")
                nullable = False
            fields.append(StructField(name, kind, nullable))
            if self._peek() == ",":
                self._at += 1
                continue
            if end is not None:
                self._expect(end)
            elif self._at < len(self._tokens):
                raise ValueError(f"there is {self._peek()!r} where a comma is due, after {name}")
            return StructType(fields)

    def _type(self, field: str) -> DataType:
        from pyspark.sql import types as t

        word = self._take()
        name = word.upper()
        if name == "ARRAY":
            self._expect("<")
            element = self._type(field)
            self._expect(">")
            return t.ArrayType(element)
        if name == "MAP":
            self._expect("<")
            key = self._type(field)
            self._expect(",")
            value = self._type(field)
            self._expect(">")
            return t.MapType(key, value)
        if name == "STRUCT":
            self._expect("<")
            return self.fields(end=">")
        if name == "DECIMAL":
            return self._decimal()
        plain: dict[str, DataType] = {
            "BOOLEAN": t.BooleanType(),
            "TINYINT": t.ByteType(),
            "SMALLINT": t.ShortType(),
            "INT": t.IntegerType(),
            "INTEGER": t.IntegerType(),
            "BIGINT": t.LongType(),
            "LONG": t.LongType(),
            "FLOAT": t.FloatType(),
            "DOUBLE": t.DoubleType(),
            "STRING": t.StringType(),
            "BINARY": t.BinaryType(),
            "DATE": t.DateType(),
            "TIMESTAMP": t.TimestampType(),
            "TIMESTAMP_NTZ": t.TimestampNTZType(),
        }
        if name in plain:
            return plain[name]
        near = nearest(name, _NAMES, cutoff=0.5)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(_NAMES)}"
        raise ValueError(f"the field {field} has the type {word or 'missing'}; {hint}")

    def _decimal(self) -> DataType:
        from pyspark.sql.types import DecimalType

        if self._peek() != "(":
            return DecimalType(10, 0)
        self._at += 1
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._at += 1
            scale = self._number()
        self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise ValueError(
                f"DECIMAL({precision},{scale}) must have 1 to 38 digits, and no more of them behind the point"
            )
        return DecimalType(precision, scale)

    def _name(self) -> str:
        match = self._tokens[self._at] if self._at < len(self._tokens) else None
        if match is None or not (match[1] or match[2]):
            raise ValueError('a field needs a name and a type, as in "id BIGINT, name STRING"')
        self._at += 1
        return match[1].replace("``", "`") if match[1] else match[2]

    def _number(self) -> int:
        word = self._take()
        if not word.isdigit():
            raise ValueError(f"there is {word!r} where a number is due")
        return int(word)

    def _peek(self) -> str:
        return self._tokens[self._at][0].strip() if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        found = self._take()
        if found.upper() != word:
            raise ValueError(
                f"there is {found!r} where {word!r} is due" if found else f"{word!r} is missing at its end"
            )

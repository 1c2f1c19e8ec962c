"""Spark's types as columns of a new table."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def columns_for(schema: StructType, key: Collection[str]) -> list[sa.Column[Any]]:
    return [
        sa.Column(
            field.name,
            _type(field.dataType, field.name in key),
            primary_key=field.name in key,
            nullable=field.nullable and field.name not in key,
            autoincrement=False,
        )
        for field in schema
    ]


def _type(kind: DataType, in_key: bool) -> sa.types.TypeEngine[Any]:
    name = kind.typeName().partition("(")[0]
    if name == "decimal":
        return sa.Numeric(getattr(kind, "precision", 10), getattr(kind, "scale", 0))
    if name == "string":
        # An index wants a length; elsewhere a text may be as long as it likes.
        return sa.String(255) if in_key else sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    return _TYPES.get(name, sa.Text)()


_TYPES: dict[str, type[sa.types.TypeEngine[Any]]] = {
    "boolean": sa.Boolean,
    "byte": sa.SmallInteger,
    "short": sa.SmallInteger,
    "integer": sa.Integer,
    "long": sa.BigInteger,
    "float": sa.Float,
    "double": sa.Double,
    "binary": sa.LargeBinary,
    "date": sa.Date,
    "timestamp": sa.DateTime,
    "timestamp_ntz": sa.DateTime,
}

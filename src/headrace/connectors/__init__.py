"""Connectors: data into topics and out of them, declared in a TOML file and run on Spark.

`run` runs them from a program; the other names are for writing your own. docs/connectors.md shows both.
"""

from headrace.connectors.base import (
    BadRow,
    Chunk,
    Connector,
    Offset,
    PolledSource,
    Raw,
    Row,
    Sink,
    Source,
    SparkSource,
)
from headrace.connectors.errors import ConfigError, ConnectorError, Rejected, Unavailable
from headrace.connectors.running import run
from headrace.connectors.settings import Seconds, setting
from headrace.connectors.topic import METADATA

__all__ = [
    "METADATA",
    "BadRow",
    "Chunk",
    "ConfigError",
    "Connector",
    "ConnectorError",
    "Offset",
    "PolledSource",
    "Raw",
    "Rejected",
    "Row",
    "Seconds",
    "Sink",
    "Source",
    "SparkSource",
    "Unavailable",
    "run",
    "setting",
]

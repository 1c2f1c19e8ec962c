"""Which connectors there are: those shipped, those of installed packages (entry points), any class by its path.

Modules are imported on demand, so a missing library affects only the connectors that need it.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import entry_points
from typing import Literal

from headrace.connectors.base import Connector
from headrace.connectors.errors import ConfigError
from headrace.nearest import nearest

Direction = Literal["source", "sink"]

SHIPPED: dict[Direction, dict[str, str]] = {
    "source": {
        "files": "headrace.connectors.files.source:FilesSource",
        "http-endpoint": "headrace.connectors.http.endpoint:HttpEndpoint",
        "http-poll": "headrace.connectors.http.poll:HttpPollSource",
        "lake": "headrace.connectors.lake.source:LakeSource",
        "redis": "headrace.connectors.redis.source:RedisSource",
        "sql": "headrace.connectors.sql.source:SqlSource",
    },
    "sink": {
        "files": "headrace.connectors.files.sink:FilesSink",
        "lake": "headrace.connectors.lake.sink:LakeSink",
        "redis": "headrace.connectors.redis.sink:RedisSink",
        "sql": "headrace.connectors.sql.sink:SqlSink",
        "webhook": "headrace.connectors.http.webhook:WebhookSink",
    },
}


def known(direction: Direction) -> dict[str, str]:
    """Name to "module:Class"; an installed package cannot take a shipped name."""
    installed = {point.name: point.value for point in entry_points(group=f"headrace.{direction}s")}
    return installed | SHIPPED[direction]


def find(direction: Direction, name: str) -> type[Connector]:
    """The class for ``type = "…"``: a known name, or module:Class."""
    names = known(direction)
    path = names.get(name, name)
    module, colon, attribute = path.partition(":")
    if not colon:
        near = nearest(name, names, cutoff=0.5)
        hint = f"did you mean {near}?" if near else f"choose {', '.join(sorted(names))}, or give module:Class"
        raise ConfigError([f"{direction}.type is {name!r}, which is no {direction} known here; {hint}"])
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise ConfigError(
            [
                f"{direction}.type is {name!r}, but {module} is a module of Python's own: give yours another name"
            ]
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ConfigError(
            [f"{direction}.type {name!r} cannot be loaded ({error}): {remedy(error)}"]
        ) from error
    except AttributeError:
        raise ConfigError([f"{direction}.type is {name!r}, but {module} has no {attribute}"]) from None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError([f"{direction}.type {name!r} cannot be loaded: {reason}"]) from error
    if not (isinstance(found, type) and issubclass(found, Connector) and found.direction == direction):
        raise ConfigError([f"{direction}.type is {name!r}, which is not a subclass of {direction.title()}"])
    return found


def remedy(error: ImportError) -> str:
    """What to do about a module that is not there."""
    extra = _EXTRAS.get((error.name or "").partition(".")[0])
    return f"pip install 'headrace[{extra}]'" if extra else "check the name and that it is installed"


_EXTRAS = {
    "deltalake": "lake",
    "httptools": "http",
    "pyarrow": "spark",
    "pyspark": "spark",
    "redis": "redis",
    "sqlalchemy": "sql",
    "urllib3": "http",
    "uvicorn": "http",
}

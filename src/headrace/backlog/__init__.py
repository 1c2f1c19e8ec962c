"""Diverting a backlog: new records are served at once while the old ones drain beside them, and both are joined again.

Works with any client and any Kafka cluster; docs/backlogs.md says what each way does to the order within a key.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.backlog.backlogs import Backlogs
    from headrace.backlog.divert import Divert
    from headrace.backlog.draining import drain, drain_async
    from headrace.backlog.states import State, Way

__all__ = ["Backlogs", "Divert", "State", "Way", "drain", "drain_async"]

_MODULE_OF = {
    "Backlogs": "backlogs",
    "Divert": "divert",
    "State": "states",
    "Way": "states",
    "drain": "draining",
    "drain_async": "draining",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return found

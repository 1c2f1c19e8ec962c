"""The parts of the benchmark, one file each.

A part is a module with ORDER, TITLE and run(session) -> list[Row]; adding a file adds a part, and
`make bench ONLY=<file name>` runs it alone.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from bench.rows import Row
from bench.session import Session


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    title: str
    order: int
    run: Callable[[Session], list[Row]]


def all_parts() -> list[Part]:
    """Every part, in the order in which a full run takes them."""
    parts = []
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        parts.append(Part(module_info.name, module.TITLE, module.ORDER, module.run))
    return sorted(parts, key=lambda part: part.order)

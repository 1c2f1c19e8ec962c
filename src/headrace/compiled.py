"""Whether this runs compiled or from its sources, and what the compiler is told in the sources (docs/compiled.md).

A compiled wheel holds both. HEADRACE_PURE=1 chooses the sources; `headrace/__init__.py` asks for it before anything else is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

C = TypeVar("C", bound=type)

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_attributes: bool) -> Callable[[C], C]:
        """Read by the compiler alone; nothing needs mypy_extensions to run."""
        return lambda decorated: decorated


PURE, COMPILED = "pure Python", "compiled"
_A_COMPILED_MODULE = "headrace.unread"


def pure_is_asked_for() -> bool:
    return os.environ.get("HEADRACE_PURE", "0") not in ("", "0")


def build() -> str:
    """What runs, as `headrace --version` says it."""
    spec = find_spec(_A_COMPILED_MODULE)
    return PURE if spec is None or str(spec.origin).endswith(".py") else COMPILED


def choose_sources() -> None:
    """Import this package's modules from their sources from now on, even where they are compiled."""
    sys.meta_path.insert(0, _Sources())


class _Sources:
    def __init__(self) -> None:
        self._finders: dict[str, FileFinder] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("headrace."):
            return None
        for directory in path or ():
            finder = self._finders.get(directory)
            if finder is None:
                finder = self._finders[directory] = FileFinder(directory, (SourceFileLoader, SOURCE_SUFFIXES))
            spec = finder.find_spec(name, target)
            if spec is not None:
                return spec
        return None

"""Extensions looked up by name: protocols, registries, configurators, proxies, filters, load balancers, clusters.

Owns one table per kind. A name resolves to what `register` was given, else to a built-in (imported on first
use), else to an entry point of the group `headrace.services.<kind>`; an unknown name lists the known ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from headrace.services.errors import ConfigError

T = TypeVar("T")


class ExtensionPoint(Generic[T]):
    """One kind of extension, by name. `T` is what a name resolves to: a class, a factory or a function."""

    def __init__(self, kind: str, builtins: Mapping[str, str]) -> None:
        self.kind = kind
        self._places = dict(builtins)  # name -> "module:attribute"
        self._loaded: dict[str, T] = {}
        self._entry_points: dict[str, EntryPoint] | None = None

    def register(self, name: str, extension: T) -> None:
        """Add an extension, or replace one of the same name."""
        self._loaded[name] = extension

    def names(self) -> list[str]:
        return sorted({*self._loaded, *self._places, *self._found()})

    def has(self, name: str) -> bool:
        return name in self._loaded or name in self._places or name in self._found()

    def get(self, name: str) -> T:
        if name in self._loaded:
            return self._loaded[name]
        if name in self._places:
            module, _, attribute = self._places[name].partition(":")
            extension: Any = getattr(importlib.import_module(module), attribute)
        elif name in self._found():
            extension = self._found()[name].load()
        else:
            raise ConfigError(f"there is no {self.kind} named {name!r}: known are {', '.join(self.names())}")
        self._loaded[name] = extension
        return cast(T, extension)

    def _found(self) -> dict[str, EntryPoint]:
        if self._entry_points is None:
            group = f"headrace.services.{self.kind.replace(' ', '_')}"
            self._entry_points = {point.name: point for point in entry_points(group=group)}
        return self._entry_points

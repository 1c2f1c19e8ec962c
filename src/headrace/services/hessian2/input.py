"""The state of reading one body: its bytes, the position, and what was read so far.

A length is trusted only as far as there are bytes to fill it. Nesting, the number of objects and what references
make of a small body are limited; any error is a Hessian2Error. `readers` has a reader for each tag, the decoder
knows which classes objects become.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from headrace.services.hessian2.brief import brief
from headrace.services.hessian2.classes import DEFAULT_CLASSES, JavaClasses
from headrace.services.hessian2.errors import Hessian2Error

ObjectReader = Callable[["Input"], object]

MAX_DEPTH = 256
MAX_OBJECTS = 1_000_000
MAX_REPEATED = 64 * 1024 * 1024


class Input(ABC):
    """One body being read. All values of a body share its references, definitions and types."""

    __slots__ = (
        "_open",
        "_repeated",
        "_sizes",
        "classes",
        "data",
        "definitions",
        "pos",
        "refs",
        "types",
    )

    def __init__(self, data: bytes | bytearray | memoryview, classes: JavaClasses = DEFAULT_CLASSES) -> None:
        self.data = bytes(data)
        self.pos = 0
        self.classes = classes
        # The numbers of the objects being read, the outermost first; of all objects their length in bytes, with
        # what they refer to counted again; and how much was counted again in all.
        self._open: list[int] = []
        self._sizes: list[int] = []
        self._repeated = 0
        self.refs: list[object] = []
        self.definitions: list[ObjectReader] = []
        self.types: list[str] = []

    @abstractmethod
    def object_reader(self, class_name: str, fields: tuple[str, ...]) -> ObjectReader:
        """The reader of objects that come with this definition."""

    @abstractmethod
    def read(self) -> Any:
        """The next value, of whatever kind."""

    def enter(self, value: object) -> int:
        """Count `value`, whose parts are read next, and go one level down; returns its reference number."""
        number = len(self.refs)
        if number >= MAX_OBJECTS:
            raise Hessian2Error(f"The body holds more than {MAX_OBJECTS} objects.")
        if len(self._open) >= MAX_DEPTH:
            raise Hessian2Error(f"The body is nested deeper than {MAX_DEPTH} levels.")
        self._open.append(number)
        self._sizes.append(-self.pos - self._repeated)
        self.refs.append(value)
        return number

    def leave(self) -> None:
        self._sizes[self._open.pop()] += self.pos + self._repeated

    def repeat(self, number: int) -> None:
        """Count what a reference stands for.

        A few lists that each hold the previous one twice fit in a small body but would be too large to print, compare
        or convert. A reference to an object that is still being read adds nothing here.
        """
        self._repeated += max(0, self._sizes[number])
        if self._repeated > MAX_REPEATED:
            raise Hessian2Error(
                f"The body refers to its own parts until they are more than {MAX_REPEATED} bytes."
            )

    def read_length(self, what: str) -> int:
        """A count of things that take at least one byte each."""
        length = self.read()
        if type(length) is not int or not 0 <= length <= len(self.data) - self.pos:
            raise Hessian2Error(
                f"A {what} announces a length of {brief(length, 40)}, which the body does not hold."
            )
        return length

    def read_str(self, what: str) -> str:
        text = self.read()
        if type(text) is not str:
            raise Hessian2Error(f"A {what} should be a string and is not.")
        return text

    def read_type(self) -> str:
        name = self.read()
        if type(name) is str:
            self.types.append(name)
            return name
        if type(name) is int and 0 <= name < len(self.types):
            return self.types[name]
        raise Hessian2Error(f"Type reference {brief(name, 40)} does not exist.")

    def take(self, length: int) -> bytes:
        start = self.pos
        self.pos = end = start + length
        piece = self.data[start:end]
        if len(piece) != length:
            raise Hessian2Error(f"A value of {length} bytes runs past the end of the body.")
        return piece

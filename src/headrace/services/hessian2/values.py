"""Java values that Python has no type for, and the ways to say which Java type a Python value is to become.

`Int`, `Long`, `Short`, `Byte`, `Float` and `Char` serve both as annotations (`list[Long]`) and as values
(`Long(5)`); `JavaType("…")` says the same inside `Annotated`, and `Typed(value, "…")` beside a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import recursive_repr
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    # A type checker sees plain ints, so that `list[Long]` takes [1, 2] and an int is a Long wherever one is asked.
    Int = int
    Long = int
    Short = int
    Byte = int
    Float = float
    Char = str
else:

    class Int(int):
        """A Java int."""

    class Long(int):
        """A Java long, also when it would fit an int: the elements of a `List<Long>` must all be longs."""

    class Short(int):
        """A Java short."""

    class Byte(int):
        """A Java byte."""

    class Float(float):
        """A Java float: rounded to 32 bits."""

    class Char(str):
        """A Java char: one UTF-16 unit."""


class Locale(str):
    """A java.util.Locale in Java's own notation, such as `en_US`."""


@dataclass(frozen=True, slots=True)
class JavaType:
    """Names a Java type in an annotation: `Annotated[datetime, JavaType("java.time.Instant")]`."""

    name: str


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with the Java type it is sent as: `Typed([1, 2], "[long")`, `Typed({}, "java.util.TreeMap")`."""

    value: object
    java_type: str


class JavaObject:
    """An object of a Java class that is not registered here: its class name and its fields, nothing more."""

    __slots__ = ("class_name", "fields")

    def __init__(self, class_name: str, fields: Mapping[str, object] | None = None) -> None:
        self.class_name = class_name
        self.fields: dict[str, object] = dict(fields or {})

    def __getitem__(self, name: str) -> object:
        return self.fields[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JavaObject):
            return NotImplemented
        return self is other or (self.class_name == other.class_name and self.fields == other.fields)

    def __hash__(self) -> int:
        """By what it holds itself, not by the objects it refers to, which may refer back."""
        plain = (str, int, float, bytes, type(None))
        own = frozenset(each for each in self.fields.items() if isinstance(each[1], plain))
        return hash((self.class_name, own))

    @recursive_repr()
    def __repr__(self) -> str:
        return f"JavaObject({self.class_name!r}, {self.fields!r})"


@dataclass(frozen=True, slots=True)
class Period:
    """A java.time.Period."""

    years: int = 0
    months: int = 0
    days: int = 0


@dataclass(frozen=True, slots=True)
class Year:
    """A java.time.Year."""

    year: int


@dataclass(frozen=True, slots=True)
class YearMonth:
    """A java.time.YearMonth."""

    year: int
    month: int


@dataclass(frozen=True, slots=True)
class MonthDay:
    """A java.time.MonthDay."""

    month: int
    day: int


class StackTraceElement(NamedTuple):
    """One line of a Java stack trace."""

    declaring_class: str
    method_name: str
    file_name: str | None = None
    line_number: int = -1

    def __str__(self) -> str:
        if self.line_number == -2:
            return f"{self.declaring_class}.{self.method_name}(Native Method)"
        place = self.file_name or "Unknown Source"
        if self.line_number >= 0:
            place += f":{self.line_number}"
        return f"{self.declaring_class}.{self.method_name}({place})"


class JavaException(Exception):
    """A Java exception whose class is not registered here. Its cause is `__cause__`, as everywhere in Python."""

    def __init__(
        self,
        class_name: str,
        message: str | None = None,
        *,
        stack_trace: Sequence[StackTraceElement] = (),
        cause: BaseException | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(class_name, message)
        self.class_name = class_name
        self.message = message
        self.stack_trace: list[StackTraceElement] = list(stack_trace)
        self.fields: dict[str, object] = dict(fields or {})
        self.__cause__ = cause

    def __str__(self) -> str:
        return self.class_name if self.message is None else f"{self.class_name}: {self.message}"

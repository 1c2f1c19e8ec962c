"""The encoder: which writer serves which Python type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from headrace.services.hessian2 import java_writers, output
from headrace.services.hessian2.bean_writers import (
    class_writer,
    write_exception,
    write_java_exception,
    write_java_object,
)
from headrace.services.hessian2.classes import DEFAULT_CLASSES, JavaClasses
from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.hints import write_typed
from headrace.services.hessian2.output import Output, Writer
from headrace.services.hessian2.values import (
    Byte,
    Char,
    Float,
    Int,
    JavaException,
    JavaObject,
    Locale,
    Long,
    MonthDay,
    Period,
    Short,
    StackTraceElement,
    Typed,
    Year,
    YearMonth,
)

_EXACT: dict[type, Writer] = {
    type(None): output.write_none,
    bool: output.write_bool,
    int: java_writers.write_any_int,
    float: output.write_double,
    str: output.write_str,
    bytes: output.write_bytes,
    bytearray: output.write_bytes,
    memoryview: output.write_bytes,
    list: output.write_list,
    tuple: output.write_tuple,
    set: output.write_set,
    frozenset: output.write_set,
    dict: output.write_dict,
    datetime: java_writers.write_datetime,
    date: java_writers.write_date,
    time: java_writers.write_time,
    timedelta: java_writers.write_duration,
    Decimal: java_writers.write_big_decimal,
    UUID: java_writers.write_uuid,
    Int: output.write_int,
    Long: output.write_long,
    Short: java_writers.write_short,
    Byte: java_writers.write_byte,
    Float: java_writers.write_float,
    Char: java_writers.write_char,
    Locale: java_writers.write_locale,
    Period: java_writers.write_period,
    Year: java_writers.write_year,
    YearMonth: java_writers.write_year_month,
    MonthDay: java_writers.write_month_day,
    StackTraceElement: java_writers.write_stack_trace_element,
    JavaException: write_java_exception,
    JavaObject: write_java_object,
    Typed: write_typed,
}
# For subclasses, in this order; the abstract ones let any mapping or sequence be sent.
_BY_BASE: list[tuple[type, Writer]] = [
    (JavaException, write_java_exception),
    (BaseException, write_exception),
    (bool, output.write_bool),
    (int, java_writers.write_any_int),
    (float, output.write_double),
    (str, output.write_str),
    (bytes, output.write_bytes),
    (datetime, java_writers.write_datetime),
    (date, java_writers.write_date),
    (Mapping, output.write_dict),
    (Set, output.write_set),
    (tuple, output.write_tuple),
    (Sequence, output.write_list),
]


class _Writers(dict[type, Writer]):
    """Writers by exact type, each found once."""

    def __init__(self, classes: JavaClasses) -> None:
        super().__init__()
        self._classes = classes

    def __missing__(self, cls: type) -> Writer:
        writer = self[cls] = self._find(cls)
        return writer

    def _find(self, cls: type) -> Writer:
        if (exact := _EXACT.get(cls)) is not None:
            return exact
        if (registered := self._classes.find(cls)) is not None:
            return class_writer(registered)
        if not issubclass(cls, Enum):
            for base, writer in _BY_BASE:
                if issubclass(cls, base):
                    return writer
        raise Hessian2Error(
            f'{cls.__qualname__} has no Java class: name it with @java_class("package.{cls.__name__}").'
        )


class Encoder(Output):
    """Writes one body: values one after the other, sharing references and class definitions as Java's do."""

    __slots__ = ()

    def __init__(self, classes: JavaClasses = DEFAULT_CLASSES) -> None:
        if type(classes.writers) is not _Writers:
            classes.writers = _Writers(classes)
        Output.__init__(self, classes.writers)

    def encode(self, value: object, writer: Writer | None = None) -> None:
        """Append `value`; `writer` (from `writer_for` or `java_type_writer`) when its Java type is declared."""
        try:
            if writer is None:
                self.writers[type(value)](self, value)
            else:
                writer(self, value)
        except RecursionError:
            raise Hessian2Error("A value is nested too deeply to be sent.") from None
        except Hessian2Error:
            raise
        except (
            Exception
        ) as error:  # a field that is not there, a property that raises, a number beyond its field
            raise Hessian2Error(
                f"A {type(value).__name__} cannot be sent: {type(error).__name__}: {error}"
            ) from error

    def encode_many(self, values: Iterable[object]) -> None:
        for value in values:
            self.encode(value)

    def getvalue(self) -> bytes:
        return bytes(self.out)


def encode(value: Any, *, classes: JavaClasses = DEFAULT_CLASSES) -> bytes:
    """One value as a body of its own."""
    encoder = Encoder(classes)
    encoder.encode(value)
    return encoder.getvalue()

"""Writers of registered classes, of exceptions, and of objects whose class is only a name here."""

from __future__ import annotations

import operator
import traceback
from enum import Enum
from functools import lru_cache
from typing import Any

from headrace.services.hessian2.classes import JavaClass, JavaClasses
from headrace.services.hessian2.hints import writer_for
from headrace.services.hessian2.java_writers import write_stack_trace_element
from headrace.services.hessian2.output import Definition, Output, Writer
from headrace.services.hessian2.strings import encode_string
from headrace.services.hessian2.values import JavaException, JavaObject, StackTraceElement

_THROWABLE_FIELDS = ("stackTrace", "cause", "detailMessage")
_MAX_FRAMES = 64

# What a Java caller would expect in place of Python's own exceptions; all others are RuntimeExceptions.
_JAVA_EXCEPTIONS: dict[type[BaseException], str] = {
    NotImplementedError: "java.lang.UnsupportedOperationException",
    PermissionError: "java.lang.SecurityException",
    TimeoutError: "java.util.concurrent.TimeoutException",
    OSError: "java.io.IOException",
    ArithmeticError: "java.lang.ArithmeticException",
    IndexError: "java.lang.IndexOutOfBoundsException",
    KeyError: "java.util.NoSuchElementException",
    TypeError: "java.lang.IllegalArgumentException",
    ValueError: "java.lang.IllegalArgumentException",
}


def class_writer(java_class: JavaClass) -> Writer:
    if java_class.kind == "enum":
        return _enum_writer(java_class)
    if java_class.kind == "exception":
        return _exception_writer(java_class)
    return _bean_writer(java_class)


def _bean_writer(java_class: JavaClass) -> Writer:
    definition = Definition(java_class.name, [each.java_name for each in java_class.fields])
    plan = [(operator.attrgetter(each.attribute), writer_for(each.annotation)) for each in java_class.fields]

    def write(output: Output, value: Any) -> None:
        if output.refer(value):
            return
        output.begin_object(definition)
        writers = output.writers
        for get, writer in plan:
            item = get(value)
            if writer is None:
                writers[type(item)](output, item)
            else:
                writer(output, item)

    return write


def _enum_writer(java_class: JavaClass) -> Writer:
    definition = Definition(java_class.name, ["name"])

    def write(output: Output, value: Enum) -> None:
        if output.refer(value):
            return
        output.begin_object(definition)
        output.out += encode_string(value.name)

    return write


def _exception_writer(java_class: JavaClass) -> Writer:
    plan = [(each.attribute, writer_for(each.annotation)) for each in java_class.fields]
    definition = Definition(
        java_class.name, [each.java_name for each in java_class.fields] + [*_THROWABLE_FIELDS]
    )

    def write(output: Output, value: BaseException) -> None:
        if output.refer(value):
            return
        output.begin_object(definition)
        for attribute, writer in plan:
            item = getattr(value, attribute, None)
            (writer or output.writers[type(item)])(output, item)
        _write_throwable(output, str(value) or None, stack_trace(value), value.__cause__)

    return write


def write_java_object(output: Output, value: JavaObject) -> None:
    if output.refer(value):
        return
    output.begin_object(_definition(value.class_name, tuple(value.fields)))
    for item in value.fields.values():
        output.write(item)


def write_java_exception(output: Output, value: JavaException) -> None:
    if output.refer(value):
        return
    output.begin_object(_definition(value.class_name, (*value.fields, *_THROWABLE_FIELDS)))
    for item in value.fields.values():
        output.write(item)
    _write_throwable(output, value.message, value.stack_trace or stack_trace(value), value.__cause__)


def write_exception(output: Output, value: BaseException) -> None:
    """An exception of a class without a Java name."""
    if output.refer(value):
        return
    message = str(value)
    java_name = java_exception_name(type(value))
    if java_name == "java.lang.RuntimeException" and type(value) is not RuntimeError:
        message = f"{type(value).__name__}: {message}" if message else type(value).__name__
    output.begin_object(_definition(java_name, _THROWABLE_FIELDS))
    _write_throwable(output, message or None, stack_trace(value), value.__cause__)


def java_exception_name(cls: type[BaseException], classes: JavaClasses | None = None) -> str:
    """The Java class that stands for a Python exception."""
    if classes is not None and (registered := classes.find(cls)) is not None:
        return registered.name
    for base in cls.__mro__:
        if base in _JAVA_EXCEPTIONS:
            return _JAVA_EXCEPTIONS[base]
    return "java.lang.RuntimeException"


def stack_trace(error: BaseException) -> list[StackTraceElement]:
    """Python's frames as Java shows them: the innermost first."""
    frames = [
        StackTraceElement(
            str(frame.f_globals.get("__name__", "python")),
            frame.f_code.co_qualname.rpartition(".")[2],
            frame.f_code.co_filename.rpartition("/")[2],
            line,
        )
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return frames[: -_MAX_FRAMES - 1 : -1]


def _write_throwable(
    output: Output, message: str | None, trace: list[StackTraceElement], cause: BaseException | None
) -> None:
    output.count()
    output.begin_list(len(trace), "[java.lang.StackTraceElement")
    for element in trace:
        write_stack_trace_element(output, element)
    output.write(cause)
    output.write(message)


def _definition(class_name: str, fields: tuple[str, ...]) -> Definition:
    # An object of an unknown class may be echoed from the wire: keep only definitions of a sensible size.
    if len(class_name) + sum(map(len, fields)) > 4096:
        return Definition(class_name, fields)
    return _kept_definition(class_name, fields)


_kept_definition = lru_cache(maxsize=1024)(Definition)

"""How a value is written where its Java type is known: from a Python annotation or from a Java type name.

`None` stands for "by the value's own type", which is right for most; the others are longs that would fit an int,
floats, arrays, collections of a given class, and collections of such.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.java_writers import (
    JAVA_WRITERS,
    write_as_double,
    write_byte,
    write_char,
    write_float,
    write_locale,
    write_short,
)
from headrace.services.hessian2.output import Output, Writer, write_bytes, write_int, write_long, write_str
from headrace.services.hessian2.values import Byte, Char, Float, Int, JavaType, Locale, Long, Short, Typed

_SCALARS: dict[Any, tuple[str, Writer]] = {
    Int: ("int", write_int),
    Long: ("long", write_long),
    Short: ("short", write_short),
    Byte: ("byte", write_byte),
    Float: ("float", write_float),
    Char: ("char", write_char),
    Locale: ("java.util.Locale", write_locale),
    float: ("double", write_as_double),
}
# The names under which hessian-lite writes arrays, where they differ from the element's class name.
_ARRAY_NAMES = {"java.lang.String": "string", "java.lang.Object": "object", "java.util.Date": "date"}
# Types that say no more than the value does.
_PLAIN = {
    "java.lang.Object",
    "object",
    "java.lang.Number",
    "java.io.Serializable",
    "java.util.Collection",
    "java.util.List",
    "java.util.Set",
    "java.util.Map",
    "java.util.HashMap",
}


def writer_for(annotation: Any) -> Writer | None:
    """The writer of values annotated so; None when their own type tells enough."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        inner, *extras = typing.get_args(annotation)
        for extra in extras:
            if isinstance(extra, JavaType):
                return java_type_writer(extra.name)
        return writer_for(inner)
    if origin in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not types.NoneType]
        return writer_for(members[0]) if len(members) == 1 else None
    if origin is None:
        found = _SCALARS.get(annotation) if isinstance(annotation, type) else None
        return None if found is None else _nullable(*found)
    arguments = [argument for argument in typing.get_args(annotation) if argument is not Ellipsis]
    inner_writers = [writer_for(argument) for argument in arguments]
    if not isinstance(origin, type) or not any(inner_writers):
        return None
    if issubclass(origin, Mapping):
        return _nullable("java.util.Map", _map_writer(None, *inner_writers))
    if issubclass(origin, set | frozenset):
        return _nullable("java.util.Set", _list_writer("java.util.HashSet", inner_writers[0]))
    if issubclass(origin, Sequence) and len(inner_writers) == 1:
        return _nullable("java.util.List", _list_writer(None, inner_writers[0]))
    return None


def java_type_writer(name: str) -> Writer | None:
    """The writer of values sent as the Java type `name`: `long`, `int[]` or `[int`, `java.util.TreeMap`…"""
    if name in _PLAIN:
        return None
    while name.endswith("[]"):
        name = "[" + name[:-2]
    if (known := JAVA_WRITERS.get(name)) is not None:
        return _nullable(name, known)
    if name == "[byte":
        return _nullable(name, write_bytes)
    if name == "[char":
        return _nullable(name, _write_chars)
    if name.startswith("["):
        element = java_type_writer(name[1:])
        wire_name = name[: name.rindex("[") + 1]
        leaf = name[len(wire_name) :]
        return _nullable(name, _list_writer(wire_name + _ARRAY_NAMES.get(leaf, leaf), element))
    as_map, as_list = _map_writer(name, None, None), _list_writer(name, None)

    def write(output: Output, value: Any) -> None:
        if isinstance(value, dict):
            as_map(output, value)
        elif isinstance(value, list | tuple | set | frozenset):
            as_list(output, value)
        else:
            output.write(value)

    return _nullable(name, write)


def write_typed(output: Output, value: Typed) -> None:
    writer = java_type_writer(value.java_type)
    if writer is None:
        output.write(value.value)
    else:
        writer(output, value.value)


def _nullable(name: str, writer: Writer) -> Writer:
    def write(output: Output, value: Any) -> None:
        if value is None:
            output.out += b"N"
        elif type(value) is Typed:
            write_typed(output, value)
        else:
            try:
                writer(output, value)
            except (TypeError, AttributeError):
                raise Hessian2Error(f"A {type(value).__name__} cannot be sent as a Java {name}.") from None

    return write


def _list_writer(java_type: str | None, element: Writer | None) -> Writer:
    def write(output: Output, value: Sequence[Any]) -> None:
        if output.refer(value):
            return
        output.begin_list(len(value), java_type)
        for item in value:
            (element or output.writers[type(item)])(output, item)

    return write


def _map_writer(java_type: str | None, key_writer: Writer | None, value_writer: Writer | None) -> Writer:
    def write(output: Output, value: Mapping[Any, Any]) -> None:
        if output.refer(value):
            return
        output.begin_map(java_type)
        for key, item in value.items():
            (key_writer or output.writers[type(key)])(output, key)
            (value_writer or output.writers[type(item)])(output, item)
        output.end()

    return write


def _write_chars(output: Output, value: str | Sequence[str]) -> None:
    write_str(output, value if isinstance(value, str) else "".join(value))

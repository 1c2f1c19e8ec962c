"""Python annotations in Java's words: `list[str]` is `java.util.List`, `bytes` is `byte[]`.

Owns the mapping and Java's descriptors (`Ljava/lang/String;`, `[B`), by which a call names its parameters.
A plain `int` is a Java long, because a long holds what an int would silently cut; `Int`, `Short`, `Annotated[int,
JavaType("java.lang.Integer")]` and their like say otherwise.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import types
import typing
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence, Set
from typing import Annotated, Any, Union

from headrace.services.hessian2 import DEFAULT_CLASSES, Byte, Char, Float, Int, JavaType, Locale, Long, Short

OBJECT = "java.lang.Object"

_BOXES = {
    "boolean": "java.lang.Boolean",
    "byte": "java.lang.Byte",
    "char": "java.lang.Character",
    "short": "java.lang.Short",
    "int": "java.lang.Integer",
    "long": "java.lang.Long",
    "float": "java.lang.Float",
    "double": "java.lang.Double",
}
_PRIMITIVES = dict(zip([*_BOXES, "void"], "ZBCSIJFDV", strict=True))
_SIMPLE: dict[object, str] = {
    type(None): "void",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "java.lang.String",
    bytes: "byte[]",
    bytearray: "byte[]",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float: "float",
    Char: "char",
    Locale: "java.util.Locale",
    decimal.Decimal: "java.math.BigDecimal",
    datetime.datetime: "java.util.Date",
    datetime.date: "java.time.LocalDate",
    datetime.time: "java.time.LocalTime",
    datetime.timedelta: "java.time.Duration",
    uuid.UUID: "java.util.UUID",
    object: OBJECT,
    Any: OBJECT,
    inspect.Parameter.empty: OBJECT,
}


def java_type(annotation: object) -> str:
    """The Java type a value with this annotation has, as Java source would write it (erased of generics)."""
    if typing.get_origin(annotation) is Annotated:
        base, *extras = typing.get_args(annotation)
        named = next((extra.name for extra in extras if isinstance(extra, JavaType)), None)
        return named or java_type(base)
    if isinstance(annotation, typing.Hashable) and annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin = typing.get_origin(annotation)
    if origin in (Union, types.UnionType):
        present = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
        return box(java_type(present[0])) if len(present) == 1 else OBJECT
    cls = origin or annotation
    if not isinstance(cls, type):
        return OBJECT
    if is_bean(cls):
        return java_name(cls)
    for collection, name in _COLLECTIONS:
        if issubclass(cls, collection):
            return name
    return OBJECT


_COLLECTIONS: list[tuple[type, str]] = [
    (Mapping, "java.util.Map"),
    (Set, "java.util.Set"),
    (Sequence, "java.util.List"),
    (Iterable, "java.util.Collection"),
    (AsyncIterator, OBJECT),
]


def unwrapped(annotation: object) -> object:
    """The annotation without `Annotated[…]` and `| None`."""
    if typing.get_origin(annotation) is Annotated:
        return unwrapped(typing.get_args(annotation)[0])
    present = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
    if type(None) in typing.get_args(annotation) and len(present) == 1:
        return unwrapped(present[0])
    return annotation


def is_bean(cls: type) -> bool:
    """Whether a class travels as an object of its own class: a dataclass, model, enum or exception."""
    return (
        dataclasses.is_dataclass(cls)
        or hasattr(cls, "model_fields")
        or issubclass(cls, enum.Enum | BaseException)
    )


def java_name(cls: type) -> str:
    """The Java class a bean was registered as; one that was not is registered under its Python name."""
    found = DEFAULT_CLASSES.find(cls)
    if found is None or found.type is not cls:
        DEFAULT_CLASSES.register(f"{cls.__module__}.{cls.__qualname__}", cls)
        found = DEFAULT_CLASSES.by_type[cls]
    return found.name


def box(name: str) -> str:
    return _BOXES.get(name, name)


def descriptor(name: str) -> str:
    """`java.lang.String` → `Ljava/lang/String;`, `int[]` → `[I`."""
    arrays = 0
    while name.endswith("[]"):
        name = name[:-2]
        arrays += 1
    return "[" * arrays + (_PRIMITIVES.get(name) or f"L{name.replace('.', '/')};")


def split_descriptor(text: str) -> list[str]:
    """The Java types in a descriptor of parameters; the reverse of joined `descriptor`s."""
    letters = {letter: name for name, letter in _PRIMITIVES.items()}
    names = []
    position = 0
    while position < len(text):
        arrays = 0
        while text[position : position + 1] == "[":
            arrays += 1
            position += 1
        letter = text[position : position + 1]
        if letter == "L":
            end = text.find(";", position)
            if end < 0:
                raise ValueError(f"the descriptor {text[:200]!r} has no ';' after its class")
            name = text[position + 1 : end].replace("/", ".")
            position = end + 1
        elif letter in letters and letter != "V":
            name = letters[letter]
            position += 1
        else:
            raise ValueError(f"the descriptor {text[:200]!r} has the unknown letter {letter!r}")
        names.append(name + "[]" * arrays)
    return names

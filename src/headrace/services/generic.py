"""Calling without the interface: what a generic service looks like, and objects as maps.

`generalize` turns beans into maps with a `class` entry, as Dubbo's PojoUtils does, so that a caller who has none of
the classes can still read them.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated

from headrace.services.hessian2 import (
    DEFAULT_CLASSES,
    Hessian2Error,
    JavaException,
    JavaObject,
    JavaType,
    Typed,
    java_exception_name,
)
from headrace.services.interface import interface, method
from headrace.services.invocation import Invocation
from headrace.services.javatypes import is_bean, java_name

# Java's $invoke takes arrays, and casts to them.
Strings = Annotated[list[str], JavaType("java.lang.String[]")]
Objects = Annotated[list[object], JavaType("java.lang.Object[]")]

INVOKE = "$invoke"
INVOKE_ASYNC = "$invokeAsync"
CALLS = frozenset((INVOKE, INVOKE_ASYNC))
GENERIC_TYPES = "Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;"
GENERIC_EXCEPTION = "org.apache.dubbo.rpc.service.GenericException"


@interface("org.apache.dubbo.rpc.service.GenericService")
class GenericService(ABC):
    """Implement this to answer every method of an interface in one place."""

    @abstractmethod
    @method(name=INVOKE)
    def invoke(self, method: str, parameter_types: Strings | None, arguments: Objects) -> object:
        """Call `method`; beans are maps with a `class` entry. Without types the name alone finds the method."""


def is_generic_call(invocation: Invocation) -> bool:
    """Whether the method to be called is named inside, beside its types and arguments."""
    return invocation.method_name in CALLS and len(invocation.arguments) == 3


def generalize(value: object) -> object:
    """A value without classes: beans and unregistered Java objects as maps, enums as their names."""
    return _generalize(value, {})


def _generalize(value: object, seen: dict[int, object]) -> object:
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if id(value) in seen:  # circular references stay circular
        return seen[id(value)]
    if isinstance(value, set | frozenset):
        members = [_generalize(item, seen) for item in value]
        if any(isinstance(member, dict | list) for member in members):
            return Typed(members, "java.util.HashSet")  # Java's sets can hold maps, Python's cannot
        return set(members)
    if isinstance(value, Sequence):
        items: list[object] = []
        seen[id(value)] = items
        items += [_generalize(item, seen) for item in value]
        return items
    fields: dict[object, object] = {}
    seen[id(value)] = fields
    if isinstance(value, JavaObject):
        fields["class"] = value.class_name
        fields |= {key: _generalize(item, seen) for key, item in value.fields.items()}
    elif isinstance(value, Mapping):
        for key, item in value.items():
            plain = _generalize(key, seen)
            if isinstance(plain, dict | list | Typed):
                raise Hessian2Error(
                    f"A map has a {type(key).__name__} as key, which is no key without its class."
                )
            fields[plain] = _generalize(item, seen)
    elif is_bean(type(value)) and not isinstance(value, BaseException):
        name = java_name(type(value))
        fields["class"] = name
        for field in DEFAULT_CLASSES.by_name[name].fields:
            fields[field.java_name] = _generalize(getattr(value, field.attribute), seen)
    else:
        return value
    return fields


def generic_exception(error: BaseException) -> JavaException:
    """What a generic caller gets instead of an exception whose class it does not have."""
    if isinstance(error, JavaException):
        java_class, message = error.class_name, error.message
    else:
        java_class, message = java_exception_name(type(error), DEFAULT_CLASSES), str(error)
    return JavaException(
        GENERIC_EXCEPTION,
        f"{java_class}: {message}",
        fields={"exceptionClass": java_class, "exceptionMessage": message},
    )

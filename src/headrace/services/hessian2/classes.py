"""Which Python class stands for which Java class.

Only a class registered here is ever built from the wire, and only from fields it declares. Python's snake_case
fields are Java's camelCase ones; `field(metadata={"java": "name"})` or a pydantic alias names another.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, TypeVar

from headrace.services.hessian2.errors import Hessian2Error

C = TypeVar("C", bound=type)
Kind = Literal["bean", "model", "enum", "exception"]


@dataclasses.dataclass(frozen=True, slots=True)
class JavaField:
    """A field: its names in Python, in `__init__` and in Java, its annotation, and whether it has no default."""

    attribute: str
    argument: str
    java_name: str
    annotation: Any
    required: bool


class JavaClass:
    """One registered class: its two names, what kind of class it is, and its fields."""

    def __init__(self, name: str, cls: type) -> None:
        self.name = name
        self.type = cls
        self.kind: Kind = _kind(cls)

    @cached_property
    def fields(self) -> tuple[JavaField, ...]:
        """Found on first use, since annotations may name classes that are defined after this one."""
        return _FIELDS[self.kind](self.type)


class JavaClasses:
    """A set of registered classes. Most programs need only the default one, which `java_class` fills."""

    def __init__(self) -> None:
        self.by_name: dict[str, JavaClass] = {}
        self.by_type: dict[type, JavaClass] = {}
        # Compiled writers and readers, kept by the encoder and the decoder; a new class makes them stale.
        self.writers: dict[type, Any] = {}
        self.readers: dict[tuple[str, tuple[str, ...]], Any] = {}

    def register(self, java_name: str, cls: type) -> None:
        """Let `cls` (a dataclass, pydantic model, Enum or exception) stand for the Java class `java_name`."""
        other = self.by_name.get(java_name)
        if other is not None and other.type.__qualname__ != cls.__qualname__:
            raise ValueError(
                f"{java_name} is already registered as {other.type.__qualname__}: "
                f"give {cls.__qualname__} another Java class name."
            )
        java_class = JavaClass(java_name, cls)
        self.by_name[java_name] = self.by_type[cls] = java_class
        self.writers.clear()
        self.readers.clear()

    def find(self, cls: type) -> JavaClass | None:
        """The registration of `cls` or of the nearest of its bases that has one."""
        for base in cls.__mro__:
            if (found := self.by_type.get(base)) is not None:
                return found
        return None


DEFAULT_CLASSES = JavaClasses()


def java_class(java_name: str, *, classes: JavaClasses = DEFAULT_CLASSES) -> Callable[[C], C]:
    """Register the decorated class: `@java_class("com.acme.Order")` above the `@dataclass` line."""

    def decorate(cls: C) -> C:
        classes.register(java_name, cls)
        return cls

    return decorate


def camel_case(name: str) -> str:
    head, *rest = name.strip("_").split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _kind(cls: type) -> Kind:
    if issubclass(cls, enum.Enum):
        return "enum"
    if issubclass(cls, BaseException):
        return "exception"
    if dataclasses.is_dataclass(cls):
        return "bean"
    if hasattr(cls, "model_fields") and hasattr(cls, "__pydantic_validator__"):
        return "model"
    raise TypeError(
        f"{cls.__qualname__} cannot stand for a Java class: "
        "make it a dataclass, a pydantic model, an Enum or an exception."
    )


def _enum_fields(cls: type[Any]) -> tuple[JavaField, ...]:
    return ()


def _exception_fields(cls: type[Any]) -> tuple[JavaField, ...]:
    own = [name for base in cls.__mro__ for name in vars(base).get("__annotations__", ())]
    return tuple(
        JavaField(name, name, camel_case(name), hint, False)
        for name, hint in _hints(cls).items()
        if name in own
    )


def _bean_fields(cls: type[Any]) -> tuple[JavaField, ...]:
    hints = _hints(cls)
    missing = dataclasses.MISSING
    return tuple(
        JavaField(
            each.name,
            each.name,
            each.metadata.get("java") or camel_case(each.name),
            hints[each.name],
            each.default is missing and each.default_factory is missing,
        )
        for each in dataclasses.fields(cls)
        if each.init
    )


def _model_fields(cls: type[Any]) -> tuple[JavaField, ...]:
    hints = _hints(cls)
    return tuple(
        JavaField(name, each.alias or name, each.alias or camel_case(name), hints[name], each.is_required())
        for name, each in cls.model_fields.items()
    )


_FIELDS: dict[Kind, Callable[[type[Any]], tuple[JavaField, ...]]] = {
    "enum": _enum_fields,
    "exception": _exception_fields,
    "bean": _bean_fields,
    "model": _model_fields,
}


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except NameError as error:
        raise Hessian2Error(
            f"An annotation of {cls.__qualname__} cannot be understood ({error}): "
            "define what it names at module level."
        ) from None

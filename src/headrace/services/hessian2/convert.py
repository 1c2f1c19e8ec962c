"""Turns what was read into what an annotation declares: lists into tuples, names into enums, maps into beans.

Used for the fields of registered dataclasses, for a method's arguments and result, and for generic calls, where
beans travel as maps. A value that does not fit is a Hessian2Error that names both sides; null always fits.
"""

from __future__ import annotations

import dataclasses
import threading
import types
import typing
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any
from uuid import UUID

from headrace.services.hessian2.brief import brief
from headrace.services.hessian2.classes import JavaClass
from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.values import JavaObject

Converter = Callable[[Any], Any]


class _Made(threading.local):
    """The beans that the conversion under way has made, by the map they came from.

    A part that is shared stays shared and is converted once, however often it is met; one that refers back to itself
    goes on doing so.
    """

    beans: dict[tuple[int, JavaClass], object] | None = None


_made = _Made()


def convert(value: object, annotation: Any) -> Any:
    """`value` as `annotation` declares it."""
    converter = converter_for(annotation)
    return value if converter is None or value is None else converter(value)


@lru_cache(maxsize=4096)
def converter_for(annotation: Any) -> Converter | None:
    """What turns a value that was read into one annotated so; None when any value will do."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return converter_for(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not types.NoneType]
        return converter_for(members[0]) if len(members) == 1 else None
    if origin is None:
        return _plain(annotation) if isinstance(annotation, type) else None
    if not isinstance(origin, type):
        return None
    if dataclasses.is_dataclass(origin):  # Page[Order]
        return _to_bean(origin, typing.get_args(annotation))
    return _collection(origin, typing.get_args(annotation))


def exact_type(annotation: Any) -> type | None:
    """The type whose values fit the annotation as they are; a quick answer for the commonest."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return exact_type(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not types.NoneType]
        return exact_type(members[0]) if len(members) == 1 else None
    if not isinstance(annotation, type):
        return None
    for base in (bool, int, float, str):
        if issubclass(annotation, base) and not issubclass(annotation, Enum):
            return base
    return annotation if converter_for(annotation) is not None else None


def _plain(cls: type[Any]) -> Converter | None:
    if cls is object:
        return None
    if issubclass(cls, Enum):
        return _to_enum(cls)
    if dataclasses.is_dataclass(cls) or hasattr(cls, "__pydantic_validator__"):
        return _to_bean(cls)
    if cls in (list, tuple, set, frozenset, dict):
        return _collection(cls, ())
    if issubclass(cls, float):
        return _scalar(float, (int,), float)
    if issubclass(cls, bool):
        return _scalar(bool, (), bool)
    if issubclass(cls, int):
        # Int, Long and their like tell the wire's type; to Python they are all ints.
        return _scalar(int, (), int)
    if issubclass(cls, str):
        return _scalar(str, (), str)
    if cls is Decimal:
        return _scalar(Decimal, (int, str), Decimal)
    if cls is UUID:
        return _scalar(UUID, (str,), UUID)
    if cls is datetime:
        return _scalar(datetime, (str,), datetime.fromisoformat)
    if cls is date:
        return _to_date
    if cls is time:
        return _scalar(time, (str,), time.fromisoformat)
    if cls in (bytes, timedelta, timezone) or issubclass(cls, BaseException):
        return _scalar(cls, (), cls)
    return None


def _scalar(target: type[Any], sources: tuple[type, ...], make: Converter) -> Converter:
    def convert_scalar(value: Any) -> Any:
        if value is None or (isinstance(value, target) and (target is bool or type(value) is not bool)):
            return value
        if type(value) in sources:
            try:
                return make(value)
            except (ValueError, ArithmeticError):
                pass
        raise _mismatch(value, target)

    return convert_scalar


def _to_date(value: Any) -> Any:
    if isinstance(value, datetime):
        # Java's own dates without time are midnight in the local zone.
        return (value if value.tzinfo is None else value.astimezone()).date()
    if value is None or isinstance(value, date):
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise _mismatch(value, date)


def _to_enum(cls: type[Enum]) -> Converter:
    def convert_enum(value: Any) -> Any:
        if value is None or isinstance(value, cls):
            return value
        name = value.fields.get("name") if isinstance(value, JavaObject) else value
        if isinstance(name, str) and name in cls.__members__:
            return cls[name]
        raise Hessian2Error(f"{cls.__qualname__} has no member {brief(name, 40)}.")

    return convert_enum


def _to_bean(cls: Any, arguments: tuple[Any, ...] = ()) -> Converter:
    java_class = JavaClass(cls.__qualname__, cls)
    bound = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))

    def make(value: Any, fields: dict[str, Any], beans: dict[tuple[int, JavaClass], object]) -> object:
        key = (id(value), java_class)
        if key not in beans:
            beans[key] = cls.__new__(cls)
            build_bean(java_class, beans[key], fields, bound)
        return beans[key]

    def convert_bean(value: Any) -> Any:
        if value is None or isinstance(value, cls):
            return value
        fields = value.fields if isinstance(value, JavaObject) else value
        if not isinstance(fields, dict):
            raise _mismatch(value, cls)
        if _made.beans is not None:
            return make(value, fields, _made.beans)
        _made.beans = {}
        try:
            return make(value, fields, _made.beans)
        finally:
            _made.beans = None

    return convert_bean


def build_bean(
    java_class: JavaClass, bean: object, wire: Mapping[str, Any], bound: Mapping[Any, Any]
) -> None:
    """Initialise `bean` from fields by their Java names; unknown ones are left out, missing ones are null.

    `bound` says what the type variables of a generic class stand for.
    """
    arguments: dict[str, Any] = {}
    for each in java_class.fields:
        if each.java_name in wire:
            value = wire[each.java_name]
        elif each.attribute in wire:
            value = wire[each.attribute]
        elif each.required:
            value = None
        else:
            continue
        if java_class.kind == "bean" and value is not None:
            converter = converter_for(_filled_in(each.annotation, bound))
            if converter is not None:
                try:
                    value = converter(value)
                except Hessian2Error as error:
                    raise Hessian2Error(f"{each.java_name}: {error}") from None
        arguments[each.argument] = value
    initialise(java_class, bean, arguments)


def _filled_in(annotation: Any, bound: Mapping[Any, Any]) -> Any:
    """`list[T]` as `list[Order]`."""
    if not bound:
        return annotation
    variables = getattr(annotation, "__parameters__", ())
    if variables:
        return annotation[tuple(bound.get(variable, variable) for variable in variables)]
    return bound.get(annotation, annotation) if isinstance(annotation, typing.TypeVar) else annotation


def initialise(java_class: JavaClass, bean: Any, arguments: Mapping[str, Any]) -> None:
    """Call the class's own `__init__`, so that its checks hold for what comes from the wire too."""
    try:
        bean.__init__(**arguments)
    except Hessian2Error:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise Hessian2Error(f"{java_class.type.__qualname__} refuses its fields: {reason:.300}") from None


def _collection(origin: type[Any], arguments: tuple[Any, ...]) -> Converter | None:
    if issubclass(origin, Mapping):
        key, item = (converter_for(argument) for argument in (arguments or (object, object)))
        return _to_dict(key, item)
    if issubclass(origin, tuple) and arguments and arguments[-1] is not Ellipsis:
        return _to_fixed_tuple([converter_for(argument) for argument in arguments])
    if issubclass(origin, tuple):
        make: type[Any] = tuple
    elif issubclass(origin, AbstractSet):
        make = frozenset if issubclass(origin, frozenset) else set
    elif issubclass(origin, Collection):
        make = list
    else:
        return None
    if not arguments:
        return _to_items(make, None, None)
    return _to_items(make, converter_for(arguments[0]), exact_type(arguments[0]))


def _to_items(make: type[Any], element: Converter | None, exact: type | None) -> Converter:
    fitting = {exact, types.NoneType}

    def convert_items(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list | tuple | set | frozenset):
            raise _mismatch(value, make)
        if element is None or set(map(type, value)) <= fitting:
            return value if type(value) is make else make(value)
        return make([None if item is None else element(item) for item in value])

    return convert_items


def _to_fixed_tuple(elements: list[Converter | None]) -> Converter:
    def convert_tuple(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list | tuple) or len(value) != len(elements):
            raise _mismatch(value, tuple)
        return tuple(
            item if element is None or item is None else element(item)
            for element, item in zip(elements, value, strict=True)
        )

    return convert_tuple


def _to_dict(key: Converter | None, item: Converter | None) -> Converter:
    def convert_dict(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _mismatch(value, dict)
        if key is None and item is None:
            return value
        return {
            (k if key is None or k is None else key(k)): (v if item is None or v is None else item(v))
            for k, v in value.items()
        }

    return convert_dict


def _mismatch(value: object, target: type) -> Hessian2Error:
    name = value.class_name if isinstance(value, JavaObject) else type(value).__name__
    return Hessian2Error(f"Expected {target.__qualname__}, got {name:.200}.")

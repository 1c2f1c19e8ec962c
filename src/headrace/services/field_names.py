"""Refuses maps with fields that the bean they stand for does not have.

A bean is made from the fields it knows and ignores the rest, as Dubbo's PojoUtils does: callers may be newer than
the provider. A caller who types the names asks for this check with the attachment `generic.strict=true`.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence

from headrace.services.hessian2 import DEFAULT_CLASSES, JavaObject
from headrace.services.interface import MethodModel
from headrace.services.invocation import Invocation
from headrace.services.javatypes import is_bean, java_name, unwrapped
from headrace.services.suggest import suggestion

STRICT = "generic.strict"


def is_strict(invocation: Invocation) -> bool:
    return invocation.attachment(STRICT) == "true"


def refuse_unknown_fields(arguments: Sequence[object], method: MethodModel) -> None:
    """Raises TypeError with one sentence for the first field, however deep, that its bean does not have."""
    seen: set[tuple[int, object]] = set()
    for value, parameter in zip(
        arguments, method.parameters, strict=False
    ):  # their number is checked elsewhere
        try:
            _check(value, parameter.annotation, seen)
        except RecursionError:
            raise TypeError(f"the argument {parameter.name!r} is nested too deeply") from None


def _check(value: object, annotation: object, seen: set[tuple[int, object]]) -> None:
    base = unwrapped(annotation)
    cls, arguments = typing.get_origin(base) or base, typing.get_args(base)
    if isinstance(value, list | tuple | set | frozenset):
        items = arguments if len(arguments) == len(value) else arguments[:1] * len(value)
        for item, declared in zip(value, items, strict=False):  # undeclared items may be anything
            _check(item, declared, seen)
        return
    if isinstance(value, JavaObject):
        value = value.fields
    if not isinstance(value, Mapping) or not isinstance(cls, type):
        return
    if issubclass(cls, Mapping):
        for item in value.values() if len(arguments) == 2 else ():
            _check(item, arguments[1], seen)
    elif is_bean(cls) and (id(value), cls) not in seen:  # maps may refer back to themselves
        seen.add((id(value), cls))
        _check_bean(value, cls, seen)


def _check_bean(fields: Mapping[object, object], cls: type, seen: set[tuple[int, object]]) -> None:
    name = java_name(cls)
    declared: dict[object, object] = {"class": object}
    java_names = []
    for field in DEFAULT_CLASSES.by_name[name].fields:
        declared[field.java_name] = declared[field.attribute] = field.annotation
        java_names.append(field.java_name)
    for key, item in fields.items():
        if key not in declared:
            raise TypeError(f"{name} has no field '{key!s:.100}'.{suggestion(str(key), java_names)}")
        _check(item, declared[key], seen)

"""Values as JSON and back.

Beans are objects with camelCase names, enums their names, dates ISO 8601, decimals and UUIDs text (a JSON number would
lose digits), bytes base64. Back again, the annotation says what a text is.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import json
import typing
import uuid
from collections.abc import Mapping
from typing import Any

from headrace.services.hessian2 import DEFAULT_CLASSES, Hessian2Error, JavaObject
from headrace.services.javatypes import is_bean, java_name, unwrapped


def dumps(value: object) -> bytes:
    """Raises TypeError for what JSON cannot hold."""
    try:
        return _dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can carry
        return _dumps(value, ensure_ascii=True).encode()


def _dumps(value: object, *, ensure_ascii: bool) -> str:
    return json.dumps(
        value, default=_plain, ensure_ascii=ensure_ascii, separators=(",", ":"), allow_nan=False
    )


def loads(data: bytes) -> Any:
    """Raises ValueError for what is not JSON."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return list(value)
    if isinstance(value, JavaObject):
        return {"class": value.class_name, **value.fields}
    if isinstance(value, Mapping):
        return dict(value)
    if is_bean(type(value)) and not isinstance(value, BaseException):
        fields = DEFAULT_CLASSES.by_name[java_name(type(value))].fields
        return {field.java_name: getattr(value, field.attribute) for field in fields}
    raise TypeError(f"a {type(value).__name__} cannot be sent as JSON")


def prepare(value: object, annotation: object) -> object:
    """A value from JSON, so far as only the annotation can tell what it stands for: bytes are base64 text.

    Also in lists, maps and beans, as deep as the annotations go.
    """
    if isinstance(value, str):
        return _from_base64(value) if _is_bytes(annotation) else value
    base = unwrapped(annotation)
    if isinstance(value, list):
        return _prepare_items(value, base)
    if isinstance(value, dict):
        return _prepare_entries(value, base)
    return value


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise Hessian2Error("Bytes are declared, but the text is no base64.") from None


def _prepare_items(items: list[Any], base: object) -> list[Any]:
    arguments = typing.get_args(base)
    if typing.get_origin(base) is tuple and len(arguments) == len(items) and arguments[-1] is not Ellipsis:
        return [prepare(item, argument) for item, argument in zip(items, arguments, strict=True)]
    return [prepare(item, arguments[0]) for item in items] if arguments else items


def _prepare_entries(entries: dict[str, Any], base: object) -> dict[str, Any]:
    cls, arguments = typing.get_origin(base) or base, typing.get_args(base)
    if not isinstance(cls, type):
        return entries
    if issubclass(cls, Mapping):
        return {key: prepare(item, arguments[1]) for key, item in entries.items()} if arguments else entries
    if not is_bean(cls):
        return entries
    declared: dict[str, Any] = {}
    for field in DEFAULT_CLASSES.by_name[java_name(cls)].fields:
        declared[field.java_name] = declared[field.attribute] = field.annotation
    return {key: prepare(item, declared.get(key, object)) for key, item in entries.items()}


def from_text(text: str, annotation: object) -> object:
    """A value from a query string, where everything is text."""
    base = unwrapped(annotation)
    if base is bool and text in ("true", "false"):
        return text == "true"
    if isinstance(base, type) and issubclass(base, int) and not issubclass(base, bool | enum.Enum):
        return int(text) if text.removeprefix("-").isdecimal() else text
    if isinstance(base, type) and issubclass(base, float):
        try:
            return float(text)
        except ValueError:
            return text
    return prepare(text, annotation)


def _is_bytes(annotation: object) -> bool:
    return unwrapped(annotation) in (bytes, bytearray)

"""A reader for each of the 256 tags: those of collections and objects are here, `scalars` has the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from headrace.services.hessian2 import scalars
from headrace.services.hessian2.brief import brief
from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.input import Input
from headrace.services.hessian2.keys import check_hash

Reader = Callable[[Input, int], Any]

_END = 0x5A


def _read_reference(source: Input, tag: int) -> object:
    number = source.read()
    if type(number) is int and 0 <= number < len(source.refs):
        source.repeat(number)
        return source.refs[number]
    raise Hessian2Error(f"Reference {brief(number, 40)} does not exist.")


def _read_list_typed(source: Input, tag: int) -> object:
    java_type = source.read_type()
    return _read_items(source, tag - 0x70, java_type)


def _read_list_untyped(source: Input, tag: int) -> object:
    return _read_items(source, tag - 0x78, "")


def _read_list_typed_long(source: Input, tag: int) -> object:
    java_type = source.read_type()
    return _read_items(source, source.read_length("list"), java_type)


def _read_list_untyped_long(source: Input, tag: int) -> object:
    return _read_items(source, source.read_length("list"), "")


def _read_items(source: Input, length: int, java_type: str) -> object:
    result: list[Any] = []
    number = source.enter(result)
    data = source.data
    for _ in range(length):
        pos = source.pos
        tag = data[pos]
        source.pos = pos + 1
        result.append(READERS[tag](source, tag))
    source.leave()
    if java_type.endswith("Set") and java_type.startswith("java.util."):
        return _become_set(source, number, result)
    return result


def _read_list_open(source: Input, tag: int) -> object:
    """A list without a length, which ends with 'Z'."""
    java_type = source.read_type() if tag == 0x55 else ""
    result: list[Any] = []
    number = source.enter(result)
    while (tag := source.take(1)[0]) != _END:
        result.append(READERS[tag](source, tag))
    source.leave()
    if java_type.endswith("Set") and java_type.startswith("java.util."):
        return _become_set(source, number, result)
    return result


def _become_set(source: Input, number: int, items: list[Any]) -> object:
    """A Java set, when Python can hash its elements and tell them apart; else they stay a list."""
    hashes: dict[int, int] = {}
    for item in items:
        try:
            check_hash(item, hashes)
        except (TypeError, Hessian2Error):
            return items
    source.refs[number] = result = set(items)
    return result


def _read_map_untyped(source: Input, tag: int) -> object:
    return _read_entries(source)


def _read_map_typed(source: Input, tag: int) -> object:
    source.read_type()
    return _read_entries(source)


def _read_entries(source: Input) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    source.enter(result)
    data = source.data
    hashes: dict[int, int] = {}
    while True:
        pos = source.pos
        tag = data[pos]
        source.pos = pos + 1
        if tag == _END:
            break
        key = READERS[tag](source, tag)
        pos = source.pos
        tag = data[pos]
        source.pos = pos + 1
        value = READERS[tag](source, tag)
        if type(key) is not str:
            if type(key) is list:
                key = tuple(key)
            try:
                check_hash(key, hashes)
            except TypeError:
                raise Hessian2Error(
                    f"A map has a {type(key).__name__} as key, which Python cannot hash: declare it frozen."
                ) from None
        result[key] = value
    source.leave()
    return result


def _read_definition(source: Input, tag: int) -> object:
    # Definitions may follow each other; a loop, so that a row of them is no recursion.
    while tag == 0x43:
        class_name = source.read_str("class name")
        length = source.read_length("class definition")
        fields = tuple([source.read_str("field name") for _ in range(length)])
        source.definitions.append(source.object_reader(class_name, fields))
        tag = source.take(1)[0]
    return READERS[tag](source, tag)


def _read_object(source: Input, tag: int) -> object:
    number = tag - 0x60
    if number >= len(source.definitions):
        raise Hessian2Error(f"Class definition {number} does not exist.")
    return source.definitions[number](source)


def _read_object_long(source: Input, tag: int) -> object:
    number = source.read()
    if type(number) is not int or not 0 <= number < len(source.definitions):
        raise Hessian2Error(f"Class definition {brief(number, 40)} does not exist.")
    return source.definitions[number](source)


def _read_nothing(source: Input, tag: int) -> NoReturn:
    raise Hessian2Error(f"Tag 0x{tag:02x} begins no value.")


def _table() -> list[Reader]:
    table: list[Reader] = [_read_nothing] * 256
    for first, last, reader in (
        (0x00, 0x1F, scalars.read_string_1),
        (0x20, 0x2F, scalars.read_binary_1),
        (0x30, 0x33, scalars.read_string_2),
        (0x34, 0x37, scalars.read_binary_2),
        (0x38, 0x3F, scalars.read_long_3),
        (0x60, 0x6F, _read_object),
        (0x70, 0x77, _read_list_typed),
        (0x78, 0x7F, _read_list_untyped),
        (0x80, 0xBF, scalars.read_int_1),
        (0xC0, 0xCF, scalars.read_int_2),
        (0xD0, 0xD7, scalars.read_int_3),
        (0xD8, 0xEF, scalars.read_long_1),
        (0xF0, 0xFF, scalars.read_long_2),
    ):
        table[first : last + 1] = [reader] * (last - first + 1)
    single: dict[int, Reader] = {
        0x41: scalars.read_binary_chunks,
        0x42: scalars.read_binary_chunks,
        0x43: _read_definition,
        0x44: scalars.read_double_9,
        0x46: scalars.read_false,
        0x48: _read_map_untyped,
        0x49: scalars.read_int_5,
        0x4A: scalars.read_date,
        0x4B: scalars.read_date,
        0x4C: scalars.read_long_9,
        0x4D: _read_map_typed,
        0x4E: scalars.read_none,
        0x4F: _read_object_long,
        0x51: _read_reference,
        0x52: scalars.read_string_chunks,
        0x53: scalars.read_string_3,
        0x54: scalars.read_true,
        0x55: _read_list_open,
        0x56: _read_list_typed_long,
        0x57: _read_list_open,
        0x58: _read_list_untyped_long,
        0x59: scalars.read_int_5,
        0x5B: scalars.read_double_zero,
        0x5C: scalars.read_double_one,
        0x5D: scalars.read_double_2,
        0x5E: scalars.read_double_3,
        0x5F: scalars.read_double_mills,
    }
    for tag, one in single.items():
        table[tag] = one
    return table


READERS = _table()

"""Options of a .proto file: those that protobuf knows become fields of its option messages, others stay as they were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


class OptionName(NamedTuple):
    text: str
    is_extension: bool


@dataclass(frozen=True, slots=True)
class Aggregate:
    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    value: bytes | int | float | str | Aggregate
    is_word: bool = False
    """A name such as true, inf or that of an enum's value."""

    def as_text(self) -> str:
        if not isinstance(self.value, bytes):
            raise ValueError("it takes a string")
        return self.value.decode("utf-8", "replace")

    def default_text(self, is_bytes: bool) -> str:
        """As a descriptor keeps a default."""
        value = self.value
        if isinstance(value, bytes):
            return escape(value) if is_bytes else value.decode("utf-8", "replace")
        if isinstance(value, Aggregate):
            raise ValueError("it takes no message")
        if isinstance(value, float):
            return repr(value) if value != int_or(value) else str(int_or(value))
        return str(value)


def int_or(value: float) -> float | int:
    return int(value) if value == value and abs(value) < 2**53 and value == int(value) else value


def escape(value: bytes) -> str:
    """Bytes as a C string without its quotes."""
    out = []
    for byte in value:
        if byte in b'"\\':
            out.append("\\" + chr(byte))
        elif 32 <= byte < 127:
            out.append(chr(byte))
        else:
            out.append({9: "\\t", 10: "\\n", 13: "\\r"}.get(byte, f"\\{byte:03o}"))
    return "".join(out)


class Options:
    def __init__(self, message: Message) -> None:
        self._message = message

    def set(self, name: list[OptionName], constant: Constant) -> None:
        target, field = self._find(name)
        if target is None or field is None or not _assign(target, field, constant):
            self._keep(name, constant)

    def _find(self, name: list[OptionName]) -> tuple[Message | None, FieldDescriptor | None]:
        target = self._message
        for part in name[:-1]:
            field = None if part.is_extension else target.DESCRIPTOR.fields_by_name.get(part.text)
            if field is None or field.message_type is None or field.is_repeated:
                return None, None
            target = getattr(target, part.text)
        last = name[-1]
        if last.is_extension or last.text == "uninterpreted_option":
            return None, None
        return target, target.DESCRIPTOR.fields_by_name.get(last.text)

    def _keep(self, name: list[OptionName], constant: Constant) -> None:
        if not name[0].is_extension and len(name) == 1:
            raise ValueError("there is no such option")
        kept = self._message.uninterpreted_option.add()
        for part in name:
            kept.name.add(name_part=part.text, is_extension=part.is_extension)
        value = constant.value
        if isinstance(value, bytes):
            kept.string_value = value
        elif isinstance(value, Aggregate):
            kept.aggregate_value = value.text
        elif isinstance(value, float):
            kept.double_value = value
        elif isinstance(value, str):
            kept.identifier_value = value
        elif value >= 0:
            kept.positive_int_value = value
        else:
            kept.negative_int_value = value


def _assign(target: Message, field: FieldDescriptor, constant: Constant) -> bool:
    """Set a known option; False when its value needs a text-format parser."""
    value = constant.value
    if isinstance(value, Aggregate) or field.message_type is not None:
        return False
    made: object
    if field.enum_type is not None:
        found = field.enum_type.values_by_name.get(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(f"{value!r} is none of its values")
        made = found.number
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        if value not in ("true", "false"):
            raise ValueError("it is true or false")
        made = value == "true"
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        made = value if field.type == FieldDescriptor.TYPE_BYTES else constant.as_text()
    else:
        made = value
    if field.is_repeated:
        getattr(target, field.name).append(made)
    else:
        setattr(target, field.name, made)
    return True

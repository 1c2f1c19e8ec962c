"""Reading a .proto file into the message that protobuf itself describes files with (FileDescriptorProto).

There is no maintained parser for Python that makes descriptors without protoc. Names of types stay as they are written; they are resolved
against all files at once in `proto_files.py`, and protobuf's own descriptor pool then judges the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.message import Message

from headrace.registry.formats.proto_options import Aggregate, Constant, OptionName, Options
from headrace.registry.formats.proto_tokens import Tokens


class _Fields(Protocol):
    def add(self, **values: Any) -> pb.FieldDescriptorProto: ...


class _Messages(Protocol):
    def add(self, **values: Any) -> pb.DescriptorProto: ...


SCALARS = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in pb.FieldDescriptorProto.Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
_LABELS = {"optional": 1, "required": 2, "repeated": 3}
_MAX_TAG, _MAX_ENUM = 2**29 - 1, 2**31 - 1


def parse(text: str, name: str) -> pb.FileDescriptorProto:
    """InvalidSchema, with the line, for a text that is not a .proto file."""
    return _Parser(text, name).file()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._tokens = Tokens(text)
        self._file = pb.FileDescriptorProto(name=name)
        self._proto3 = self._editions = False

    # The file.

    def file(self) -> pb.FileDescriptorProto:
        if self._tokens.peek() in ("syntax", "edition"):
            self._syntax()
        else:
            self._file.syntax = "proto2"
        while self._tokens.kind() != "end":
            if not self._tokens.take(";"):
                self._top_level()
        return self._file

    def _syntax(self) -> None:
        which = self._tokens.next()
        self._tokens.expect("=")
        value = self._tokens.text()
        self._tokens.expect(";")
        if which == "edition":
            number = pb.Edition.items()
            found = dict(number).get(f"EDITION_{value}")
            if found is None:
                self._tokens.fail(f"unknown edition {value!r}")
            self._file.syntax, self._file.edition, self._editions = "editions", found, True
        elif value in ("proto2", "proto3"):
            self._file.syntax, self._proto3 = value, value == "proto3"
        else:
            self._tokens.fail(f"unknown syntax {value!r}; it is proto2 or proto3")

    def _top_level(self) -> None:
        file = self._file
        word = self._tokens.name()
        if word == "package":
            file.package = self._tokens.full_name()
            self._tokens.expect(";")
        elif word == "import":
            if self._tokens.take("public"):
                file.public_dependency.append(len(file.dependency))
            elif self._tokens.take("weak"):
                file.weak_dependency.append(len(file.dependency))
            file.dependency.append(self._tokens.text())
            self._tokens.expect(";")
        elif word == "option":
            self._option(file.options)
        elif word == "message":
            self._message(file.message_type.add())
        elif word == "enum":
            self._enum(file.enum_type.add())
        elif word == "service":
            self._service(file.service.add())
        elif word == "extend":
            self._extend(file.extension, file.message_type)
        else:
            self._tokens.back()
            self._tokens.fail(f"unexpected {word!r}")

    # Messages.

    def _message(self, message: pb.DescriptorProto) -> None:
        message.name = self._tokens.name()
        self._body(message)

    def _body(self, message: pb.DescriptorProto) -> None:
        self._tokens.block(lambda: self._element(message))
        for field in message.field:  # after all real ones, as protoc does
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                name = f"_{field.name}"
                while any(name == each.name for each in (*message.oneof_decl, *message.field)):
                    name = f"X{name}"
                message.oneof_decl.add(name=name)

    def _element(self, message: pb.DescriptorProto) -> None:
        word, following = self._tokens.peek(), self._tokens.ahead(1)
        if following in ("=", ".") or (word not in _ELEMENTS and not (word == "map" and following == "<")):
            self._field(message.field, message.nested_type)
            return
        if word == "map":
            self._map(message)
            return
        if word in ("message", "enum", "oneof", "extend", "reserved", "extensions", "option"):
            self._tokens.next()
        match word:
            case "message":
                self._message(message.nested_type.add())
            case "enum":
                self._enum(message.enum_type.add())
            case "oneof":
                self._oneof(message)
            case "extend":
                self._extend(message.extension, message.nested_type)
            case "reserved":
                self._reserved(message, _MAX_TAG, inclusive=False)
            case "extensions":
                self._extensions(message)
            case "option":
                self._option(message.options)
            case _:
                self._field(message.field, message.nested_type)

    def _field(
        self, fields: _Fields, groups: _Messages, oneof: int | None = None, extendee: str = ""
    ) -> None:
        label = 1
        optional = False
        if self._tokens.peek() in _LABELS and self._tokens.ahead(1) != "=":
            word = self._tokens.next()
            if oneof is not None:
                self._tokens.back()
                self._tokens.fail("a field of a oneof has no label")
            label, optional = _LABELS[word], word == "optional"
        elif oneof is None and not self._proto3 and not self._editions:
            self._tokens.fail(f"expected optional, required or repeated but was {self._tokens.peek()!r}")
        if self._tokens.peek() == "group" and self._tokens.ahead(2) == "=":
            self._group(fields, groups, label, oneof, extendee)
            return
        field = fields.add(label=label)
        kind = self._tokens.full_name()
        if kind in SCALARS:
            field.type = SCALARS[kind]
        else:
            field.type_name = kind
        self._finish_field(field, oneof, extendee)
        if optional and self._proto3 and not extendee:
            field.proto3_optional = True

    def _finish_field(self, field: pb.FieldDescriptorProto, oneof: int | None, extendee: str) -> None:
        field.name = self._tokens.name()
        self._tokens.expect("=")
        field.number = self._tokens.integer(1, _MAX_TAG)
        if oneof is not None:
            field.oneof_index = oneof
        if extendee:
            field.extendee = extendee
        self._field_options(field)
        self._tokens.expect(";")

    def _group(
        self, fields: _Fields, groups: _Messages, label: int, oneof: int | None, extendee: str
    ) -> None:
        self._tokens.next()
        name = self._tokens.name()
        self._tokens.expect("=")
        field = fields.add(name=name.lower(), label=label, number=self._tokens.integer(1, _MAX_TAG))
        field.type = pb.FieldDescriptorProto.TYPE_GROUP
        field.type_name = name
        if oneof is not None:
            field.oneof_index = oneof
        if extendee:
            field.extendee = extendee
        self._field_options(field)
        self._body(groups.add(name=name))

    def _map(self, message: pb.DescriptorProto) -> None:
        self._tokens.next()
        self._tokens.expect("<")
        key = self._tokens.name()
        if key not in SCALARS or key in ("float", "double", "bytes"):
            self._tokens.fail(f"a map's key cannot be {key}")
        self._tokens.expect(",")
        value = self._tokens.full_name()
        self._tokens.expect(">")
        field = message.field.add(label=3, type=pb.FieldDescriptorProto.TYPE_MESSAGE)
        self._finish_field(field, None, "")
        camel = "".join(part[:1].upper() + part[1:] for part in field.name.split("_"))
        entry = message.nested_type.add(name=f"{camel}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=1, type=SCALARS[key])
        second = entry.field.add(name="value", number=2, label=1)
        if value in SCALARS:
            second.type = SCALARS[value]
        else:
            second.type_name = value
        field.type_name = entry.name

    def _oneof(self, message: pb.DescriptorProto) -> None:
        number = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=self._tokens.name())

        def element() -> None:
            if (self._tokens.peek() == "option" and self._tokens.ahead(2) != "=") or (
                self._tokens.peek() == "option" and self._tokens.ahead(1) != "."
            ):
                self._tokens.next()
                self._option(oneof.options)
            else:
                self._field(message.field, message.nested_type, number)

        self._tokens.block(element)

    def _extend(self, fields: _Fields, groups: _Messages) -> None:
        extendee = self._tokens.full_name()
        self._tokens.block(lambda: self._field(fields, groups, extendee=extendee))

    def _reserved(
        self, of: pb.DescriptorProto | pb.EnumDescriptorProto, most: int, *, inclusive: bool
    ) -> None:
        while True:
            if self._tokens.kind() == "string":
                of.reserved_name.append(self._tokens.text())
            elif self._tokens.kind() == "name":
                of.reserved_name.append(self._tokens.name())
            else:
                start, end = self._range(-(2**31) if inclusive else 1, most)
                of.reserved_range.add(start=start, end=end if inclusive else end + 1)
            if not self._tokens.take(","):
                break
        self._tokens.expect(";")

    def _range(self, least: int, most: int) -> tuple[int, int]:
        start = self._tokens.integer(least, most)
        if not self._tokens.take("to"):
            return start, start
        return start, most if self._tokens.take("max") else self._tokens.integer(start, most)

    def _extensions(self, message: pb.DescriptorProto) -> None:
        first = len(message.extension_range)
        while True:
            start, end = self._range(1, _MAX_TAG)
            message.extension_range.add(start=start, end=end + 1)
            if not self._tokens.take(","):
                break
        if self._tokens.take("["):
            options = Options(message.extension_range[first].options)
            self._bracketed(options.set)
            for each in message.extension_range[first + 1 :]:
                each.options.CopyFrom(message.extension_range[first].options)
        self._tokens.expect(";")

    # Enums and services.

    def _enum(self, enum: pb.EnumDescriptorProto) -> None:
        enum.name = self._tokens.name()

        def element() -> None:
            following = self._tokens.ahead(1)
            if self._tokens.peek() == "option" and following != "=":
                self._tokens.next()
                self._option(enum.options)
            elif self._tokens.peek() == "reserved" and following != "=":
                self._tokens.next()
                self._reserved(enum, _MAX_ENUM, inclusive=True)
            else:
                value = enum.value.add(name=self._tokens.name())
                self._tokens.expect("=")
                value.number = self._tokens.integer(-(2**31), _MAX_ENUM)
                if self._tokens.take("["):
                    self._bracketed(Options(value.options).set)
                self._tokens.expect(";")

        self._tokens.block(element)

    def _service(self, service: pb.ServiceDescriptorProto) -> None:
        service.name = self._tokens.name()

        def element() -> None:
            word = self._tokens.name()
            if word == "option":
                self._option(service.options)
                return
            if word != "rpc":
                self._tokens.fail(f"expected rpc but was {word!r}")
            method = service.method.add(name=self._tokens.name())
            method.client_streaming, method.input_type = self._message_of_rpc()
            self._tokens.expect("returns")
            method.server_streaming, method.output_type = self._message_of_rpc()
            if not method.client_streaming:
                method.ClearField("client_streaming")
            if not method.server_streaming:
                method.ClearField("server_streaming")
            if self._tokens.peek() != "{":
                self._tokens.expect(";")
                return

            def inside() -> None:
                self._tokens.expect("option")
                self._option(method.options)

            self._tokens.block(inside)

        self._tokens.block(element)

    def _message_of_rpc(self) -> tuple[bool, str]:
        self._tokens.expect("(")
        streaming = self._tokens.peek() == "stream" and self._tokens.ahead(1) != ")"
        if streaming:
            self._tokens.next()
        name = self._tokens.full_name()
        self._tokens.expect(")")
        return streaming, name

    # Options.

    def _option(self, options: Message) -> None:
        name = self._option_name()
        self._tokens.expect("=")
        self._apply(Options(options).set, name, self._constant())
        self._tokens.expect(";")

    def _field_options(self, field: pb.FieldDescriptorProto) -> None:
        if not self._tokens.take("["):
            return
        options = Options(field.options)

        def apply(name: list[OptionName], value: Constant) -> None:
            first = name[0]
            if len(name) == 1 and not first.is_extension and first.text == "default":
                field.default_value = value.default_text(field.type == pb.FieldDescriptorProto.TYPE_BYTES)
            elif len(name) == 1 and not first.is_extension and first.text == "json_name":
                field.json_name = value.as_text()
            else:
                options.set(name, value)

        self._bracketed(apply)

    def _bracketed(self, apply: Callable[[list[OptionName], Constant], None]) -> None:
        while True:
            name = self._option_name()
            self._tokens.expect("=")
            self._apply(apply, name, self._constant())
            if not self._tokens.take(","):
                break
        self._tokens.expect("]")

    def _apply(
        self, apply: Callable[[list[OptionName], Constant], None], name: list[OptionName], value: Constant
    ) -> None:
        try:
            apply(name, value)
        except (ValueError, TypeError) as error:
            self._tokens.fail(f"option {'.'.join(part.text for part in name)}: {error}")

    def _option_name(self) -> list[OptionName]:
        parts = []
        while True:
            if self._tokens.take("("):
                parts.append(OptionName(self._tokens.full_name(), True))
                self._tokens.expect(")")
            else:
                parts.append(OptionName(self._tokens.name(), False))
            if not self._tokens.take("."):
                return parts

    def _constant(self) -> Constant:
        kind = self._tokens.kind()
        if kind == "string":
            return Constant(self._tokens.string())
        if self._tokens.peek() == "{":
            return Constant(Aggregate(self._aggregate()))
        sign = self._tokens.next() if self._tokens.peek() in ("-", "+") else ""
        if self._tokens.kind() == "name":
            word = self._tokens.name() if sign else self._tokens.full_name()
            if sign and word not in ("inf", "nan"):
                self._tokens.fail(f"expected a number but was {word!r}")
            return Constant(float(sign + word) if sign else word, is_word=not sign)
        if self._tokens.kind() != "number":
            self._tokens.fail(f"expected a constant but was {self._tokens.peek()!r}")
        literal = self._tokens.next()
        try:
            number: int | float = int(literal, 8 if re.fullmatch(r"0[0-7]+", literal) else 0)
        except ValueError:
            try:
                number = float(literal.rstrip("fF"))
            except ValueError:
                self._tokens.back()
                self._tokens.fail(f"{literal!r} is no number")
        return Constant(-number if sign == "-" else number)

    def _aggregate(self) -> str:
        """The inside of {…} as text: what it means depends on a message that is only known once all files are."""
        self._tokens.expect("{")
        depth = 1
        words: list[str] = []
        while True:
            if self._tokens.kind() == "end":
                self._tokens.fail("expected '}' but was the end of the file")
            token = self._tokens.next()
            depth += token in ("{", "<")
            depth -= token in ("}", ">")
            if not depth:
                return " ".join(words)
            words.append(token)


_ELEMENTS = frozenset({"message", "enum", "oneof", "extend", "reserved", "extensions", "option"})

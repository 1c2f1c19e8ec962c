"""A file's descriptor as .proto text: the canonical form, in which comments and layout are gone and names are as short as they can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from headrace.registry.formats.proto_files import Kinds, resolve_name
from headrace.registry.formats.proto_options import escape
from headrace.registry.formats.proto_parse import SCALARS

_SCALAR_NAMES = {number: name for name, number in SCALARS.items()}
_MAX_TAG, _MAX_ENUM = 2**29 - 1, 2**31 - 1
_GROUP = pb.FieldDescriptorProto.TYPE_GROUP


def print_file(file: pb.FileDescriptorProto, kinds: Kinds, *, normal: bool = False) -> str:
    """With `normal`, what the order of has no meaning is sorted and names are full."""
    return "\n".join(_Printer(file, kinds, normal).lines()) + "\n"


class _Printer:
    def __init__(self, file: pb.FileDescriptorProto, kinds: Kinds, normal: bool) -> None:
        self._file = file
        self._kinds = kinds
        self._normal = normal
        self._proto3 = file.syntax == "proto3"
        self._editions = file.syntax == "editions"

    def lines(self) -> Iterator[str]:
        file = self._file
        if self._editions:
            yield f'edition = "{pb.Edition.Name(file.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        imports = [self._import(number, name) for number, name in enumerate(file.dependency)]
        if imports:
            yield from ("", *(sorted(imports) if self._normal else imports))
        options = [f"option {each};" for each in self._options(file.options, file.package)]
        if options:
            yield from ("", *options)
        for message in file.message_type:
            yield ""
            yield from self._message(message, file.package)
        for enum in file.enum_type:
            yield ""
            yield from self._enum(enum, file.package)
        yield from self._extends(file.extension, (), file.package, first="")
        for service in file.service:
            yield ""
            yield from self._service(service, file.package)

    def _import(self, number: int, name: str) -> str:
        kind = (
            "public "
            if number in self._file.public_dependency
            else "weak "
            if number in self._file.weak_dependency
            else ""
        )
        return f'import {kind}"{name}";'

    def _name(self, full: str, scope: str) -> str:
        """The shortest name that means `full` inside `scope`."""
        if self._normal or not full.startswith("."):
            return full
        parts = full[1:].split(".")
        for count in range(1, len(parts) + 1):
            short = ".".join(parts[-count:])
            if resolve_name(short, scope, self._kinds) == full[1:] and self._plain(short, full[1:]):
                return short
        return full

    def _plain(self, short: str, full: str) -> bool:
        """Names in the file's own package may be short; others are written in full."""
        return short == full or self._kinds[full][1].package == self._file.package

    def _message(self, message: pb.DescriptorProto, scope: str) -> Iterator[str]:
        yield from _wrapped(f"message {message.name}", self._body(message, scope))

    def _body(self, message: pb.DescriptorProto, scope: str) -> Iterator[str]:
        scope = f"{scope}.{message.name}" if scope else message.name
        entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
        groups = {field.type_name for field in (*message.field, *message.extension) if field.type == _GROUP}
        for option in self._options(message.options, scope):
            yield f"option {option};"
        yield from self._reserved(
            message.reserved_range, message.reserved_name, _MAX_TAG + 1, inclusive=False
        )
        for extension in message.extension_range:
            last = "max" if extension.end > _MAX_TAG else str(extension.end - 1)
            single = extension.end - 1 == extension.start
            bracketed = ", ".join(self._options(extension.options, scope))
            shown = f"{extension.start}" if single else f"{extension.start} to {last}"
            yield f"extensions {shown}{f' [{bracketed}]' if bracketed else ''};"
        fields: Sequence[pb.FieldDescriptorProto] = message.field
        if self._normal:
            fields = sorted(fields, key=lambda field: field.number)
        told: set[int] = set()
        for field in fields:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield from self._field(field, scope, entries, message)
            elif field.oneof_index not in told:
                told.add(field.oneof_index)
                oneof = message.oneof_decl[field.oneof_index]
                members = [
                    each
                    for each in fields
                    if each.HasField("oneof_index")
                    and each.oneof_index == field.oneof_index
                    and not each.proto3_optional
                ]
                options = [f"option {each};" for each in self._options(oneof.options, scope)]
                inside = [line for each in members for line in self._field(each, scope, entries, message)]
                yield from _wrapped(f"oneof {oneof.name}", [*options, *inside])
        for nested in message.nested_type:
            if nested.name not in entries and f".{scope}.{nested.name}" not in groups:
                yield ""
                yield from self._message(nested, scope)
        for enum in message.enum_type:
            yield ""
            yield from self._enum(enum, scope)
        yield from self._extends(message.extension, message.nested_type, scope, first="")

    def _field(
        self,
        field: pb.FieldDescriptorProto,
        scope: str,
        entries: dict[str, pb.DescriptorProto],
        message: pb.DescriptorProto | None,
    ) -> Iterator[str]:
        entry = entries.get(field.type_name.rpartition(".")[2]) if field.type_name else None
        label = ""
        if entry is None:
            label = self._label(field)
        options = [
            *([f"default = {self._default(field)}"] if field.HasField("default_value") else ()),
            *([f'json_name = "{field.json_name}"'] if self._has_json_name(field) else ()),
            *self._options(field.options, scope),
        ]
        bracketed = f" [{', '.join(options)}]" if options else ""
        if entry is not None:
            kind = f"map<{self._kind(entry.field[0], scope)}, {self._kind(entry.field[1], scope)}>"
        elif field.type == _GROUP:
            name = field.type_name.rpartition(".")[2]
            group = (
                next((each for each in message.nested_type if each.name == name), None) if message else None
            )
            inside = self._body(group, scope) if group is not None else ()
            yield from _wrapped(f"{label}group {name} = {field.number}{bracketed}", inside)
            return
        else:
            kind = self._kind(field, scope)
        yield f"{label}{kind} {field.name} = {field.number}{bracketed};"

    def _label(self, field: pb.FieldDescriptorProto) -> str:
        if field.label == pb.FieldDescriptorProto.LABEL_REPEATED:
            return "repeated "
        if field.label == pb.FieldDescriptorProto.LABEL_REQUIRED:
            return "required "
        in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        return (
            "optional " if field.proto3_optional or not (self._proto3 or self._editions or in_oneof) else ""
        )

    def _has_json_name(self, field: pb.FieldDescriptorProto) -> bool:
        first, *rest = field.name.split("_")
        plain = first + "".join(part[:1].upper() + part[1:] for part in rest)
        return field.HasField("json_name") and field.json_name != plain and not field.extendee

    def _kind(self, field: pb.FieldDescriptorProto, scope: str) -> str:
        return self._name(field.type_name, scope) if field.type_name else _SCALAR_NAMES[field.type]

    def _default(self, field: pb.FieldDescriptorProto) -> str:
        value = field.default_value
        if field.type == pb.FieldDescriptorProto.TYPE_STRING:
            return f'"{escape(value.encode())}"'
        return f'"{value}"' if field.type == pb.FieldDescriptorProto.TYPE_BYTES else value

    def _extends(
        self,
        fields: Iterable[pb.FieldDescriptorProto],
        groups: Iterable[pb.DescriptorProto],
        scope: str,
        first: str,
    ) -> Iterator[str]:
        by_extendee: dict[str, list[pb.FieldDescriptorProto]] = {}
        for field in fields:
            by_extendee.setdefault(field.extendee, []).append(field)
        around = pb.DescriptorProto(nested_type=groups)
        for extendee, added in by_extendee.items():
            yield first
            inside = [line for field in added for line in self._field(field, scope, {}, around)]
            yield from _wrapped(f"extend {self._name(extendee, scope)}", inside)

    def _enum(self, enum: pb.EnumDescriptorProto, scope: str) -> Iterator[str]:
        inside = [f"option {each};" for each in self._options(enum.options, scope)]
        inside += self._reserved(enum.reserved_range, enum.reserved_name, _MAX_ENUM, inclusive=True)
        values: Sequence[pb.EnumValueDescriptorProto] = enum.value
        if self._normal:
            values = sorted(values, key=lambda value: value.number)
        for value in values:
            options = ", ".join(self._options(value.options, scope))
            inside.append(f"{value.name} = {value.number}{f' [{options}]' if options else ''};")
        yield from _wrapped(f"enum {enum.name}", inside)

    def _reserved(
        self,
        ranges: Iterable[pb.DescriptorProto.ReservedRange]
        | Iterable[pb.EnumDescriptorProto.EnumReservedRange],
        names: Iterable[str],
        most: int,
        *,
        inclusive: bool,
    ) -> Iterator[str]:
        shown = []
        for each in ranges:
            last = each.end if inclusive else each.end - 1
            end = "max" if each.end >= most else str(last)
            shown.append(f"{each.start}" if last == each.start else f"{each.start} to {end}")
        if shown:
            yield f"reserved {', '.join(shown)};"
        if quoted := [name if self._editions else f'"{name}"' for name in names]:
            yield f"reserved {', '.join(quoted)};"

    def _service(self, service: pb.ServiceDescriptorProto, scope: str) -> Iterator[str]:
        inside = [f"option {each};" for each in self._options(service.options, scope)]
        for method in service.method:
            takes = f"{'stream ' * method.client_streaming}{self._name(method.input_type, scope)}"
            gives = f"{'stream ' * method.server_streaming}{self._name(method.output_type, scope)}"
            options = [f"option {each};" for each in self._options(method.options, scope)]
            head = f"rpc {method.name} ({takes}) returns ({gives})"
            inside += _wrapped(head, options) if options else [f"{head};"]
        yield from _wrapped(f"service {service.name}", inside)

    # Options.

    def _options(self, options: Message, scope: str) -> list[str]:
        found = list(_known("", options))
        for kept in options.uninterpreted_option:
            name = ".".join(
                f"({part.name_part})" if part.is_extension else part.name_part for part in kept.name
            )
            found.append(f"{name} = {_kept_value(kept)}")
        return sorted(found) if self._normal else found


def _known(prefix: str, options: Message) -> Iterator[str]:
    for field, value in options.ListFields():
        if field.name in ("uninterpreted_option", "map_entry") or field.is_extension:
            continue
        name = f"{prefix}{field.name}"
        for each in value if field.is_repeated else (value,):
            if field.message_type is not None:
                yield from _known(f"{name}.", each)
            else:
                yield f"{name} = {_shown(field, each)}"


def _shown(field: FieldDescriptor, value: object) -> str:
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return str(value) if found is None else str(found.name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | bytes):
        return f'"{escape(value.encode() if isinstance(value, str) else value)}"'
    return str(value)


def _kept_value(kept: pb.UninterpretedOption) -> str:
    if kept.HasField("string_value"):
        return f'"{escape(kept.string_value)}"'
    if kept.HasField("aggregate_value"):
        return f"{{ {kept.aggregate_value} }}"
    if kept.HasField("double_value"):
        return repr(kept.double_value)
    if kept.HasField("positive_int_value"):
        return str(kept.positive_int_value)
    return str(kept.negative_int_value) if kept.HasField("negative_int_value") else kept.identifier_value


def _wrapped(head: str, inside: Iterable[str]) -> Iterator[str]:
    lines = list(inside)
    while lines and not lines[0]:
        del lines[0]
    if not lines:
        yield f"{head} {{}}"
        return
    yield f"{head} {{"
    yield from (f"  {line}" if line else "" for line in lines)
    yield "}"

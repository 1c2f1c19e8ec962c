"""A .proto file together with what it imports: names are resolved, and protobuf's descriptor pool judges the whole."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module

from google.protobuf import descriptor_pb2 as pb
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError

from headrace.registry.errors import InvalidSchema
from headrace.registry.formats.proto_parse import parse

_MESSAGE, _ENUM, _GROUP = (
    pb.FieldDescriptorProto.TYPE_MESSAGE,
    pb.FieldDescriptorProto.TYPE_ENUM,
    pb.FieldDescriptorProto.TYPE_GROUP,
)
_GOOGLE = {
    "google/protobuf/": (
        "any api descriptor duration empty field_mask source_context struct timestamp type wrappers"
    ),
    "google/type/": (
        "calendar_period color date datetime dayofweek decimal expr fraction interval latlng localized_text "
        "money month phone_number postal_address quaternion timeofday"
    ),
}
_CONFLUENT = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
}
"""Files that every schema may import without a reference, as with Confluent's registry."""

Kinds = dict[str, tuple[int, pb.FileDescriptorProto]]
"""Every message and enum by its full name, with the file it stands in."""


def read_file(text: str, name: str) -> pb.FileDescriptorProto:
    """A .proto file, or the base64 of a descriptor, which is what confluent-kafka's Python serializer sends."""
    described = _described(text)
    if described is None:
        return parse(text, name)
    described.name = name
    described.ClearField("source_code_info")
    return described


def _described(text: str) -> pb.FileDescriptorProto | None:
    packed = text.strip()
    if not packed or any(character in packed for character in ";{} \n"):
        return None
    try:
        return pb.FileDescriptorProto.FromString(base64.b64decode(packed, validate=True))
    except (binascii.Error, DecodeError):
        return None


@cache
def known_file(name: str) -> pb.FileDescriptorProto | None:
    """A file that comes with protobuf, Google's common types or Confluent's registry."""
    if name in _CONFLUENT:
        return parse(_CONFLUENT[name], name)
    for folder, names in _GOOGLE.items():
        if name.startswith(folder) and name[len(folder) : -len(".proto")] in names.split():
            try:
                module = import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
            except ImportError:
                return None
            file = pb.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(file)
            return file
    return None


def link(
    file: pb.FileDescriptorProto, references: Mapping[str, str]
) -> tuple[Kinds, list[pb.FileDescriptorProto]]:
    """Resolve the names in `file` and check it; what it can see, and the files it needs, those first that others need."""
    parsed = {name: read_file(text, name) for name, text in references.items()}
    files = list(_in_order(file, parsed, [], set()))
    kinds = _kinds(files)
    for each in files:
        if each.name in parsed or not each.name.startswith("google/"):
            _Resolver(each, kinds).resolve()
    pool = descriptor_pool.DescriptorPool()
    for each in files:
        bare = pb.FileDescriptorProto()
        bare.CopyFrom(each)
        try:
            pool.AddSerializedFile(bare.SerializeToString())
        except TypeError as error:
            reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
            raise InvalidSchema(
                reason if each is file else f"the reference {each.name} cannot be used: {reason}"
            ) from None
    return kinds, files


def _in_order(
    file: pb.FileDescriptorProto,
    parsed: Mapping[str, pb.FileDescriptorProto],
    above: list[str],
    done: set[str],
) -> Iterator[pb.FileDescriptorProto]:
    if file.name in above:
        raise InvalidSchema(f"the imports go in a circle: {' -> '.join([*above, file.name])}")
    for name in file.dependency:
        if name in done:
            continue
        found = parsed.get(name) or known_file(name)
        if found is None:
            raise InvalidSchema(
                f'the import "{name}" is not among the references; add one with this name, a subject and a version'
            )
        yield from _in_order(found, parsed, [*above, file.name], done)
    if file.name not in done:
        done.add(file.name)
        yield file


def _kinds(files: Iterable[pb.FileDescriptorProto]) -> Kinds:
    found: Kinds = {}

    def note(name: str, kind: int, file: pb.FileDescriptorProto) -> None:
        if name in found and found[name][1] is file:
            raise InvalidSchema(f'"{name}" is already defined')
        found[name] = kind, file

    def walk(messages: Iterable[pb.DescriptorProto], scope: str, file: pb.FileDescriptorProto) -> None:
        for message in messages:
            name = f"{scope}.{message.name}" if scope else message.name
            note(name, _MESSAGE, file)
            for enum in message.enum_type:
                note(f"{name}.{enum.name}", _ENUM, file)
            walk(message.nested_type, name, file)

    for file in files:
        for enum in file.enum_type:
            note(f"{file.package}.{enum.name}" if file.package else enum.name, _ENUM, file)
        walk(file.message_type, file.package, file)
    return found


def resolve_name(name: str, scope: str, kinds: Kinds) -> str | None:
    """The full name of what a name means inside `scope`, as C++ looks names up; None for nothing."""
    if name.startswith("."):
        return name[1:] if name[1:] in kinds else None
    while True:
        full = f"{scope}.{name}" if scope else name
        if full in kinds:
            return full
        if not scope:
            return None
        scope = scope.rpartition(".")[0]


class _Resolver:
    def __init__(self, file: pb.FileDescriptorProto, kinds: Kinds) -> None:
        self._file = file
        self._kinds = kinds

    def resolve(self) -> None:
        file = self._file
        for message in file.message_type:
            self._message(message, file.package)
        self._fields(file.extension, file.package)
        for service in file.service:
            for method in service.method:
                method.input_type = self._full(method.input_type, file.package, method.name)
                method.output_type = self._full(method.output_type, file.package, method.name)

    def _message(self, message: pb.DescriptorProto, scope: str) -> None:
        scope = f"{scope}.{message.name}" if scope else message.name
        for below in message.nested_type:
            self._message(below, scope)
        self._fields(message.field, scope)
        self._fields(message.extension, scope)

    def _fields(self, fields: Iterable[pb.FieldDescriptorProto], scope: str) -> None:
        for field in fields:
            if field.extendee:
                field.extendee = self._full(field.extendee, scope, field.name)
            if field.type_name:
                field.type_name = self._full(field.type_name, scope, field.name)
                if field.type != _GROUP:
                    field.type = self._kinds[field.type_name[1:]][0]

    def _full(self, name: str, scope: str, used_by: str) -> str:
        found = resolve_name(name, scope, self._kinds)
        if found is None:
            raise InvalidSchema(
                f'"{name}" is not defined, where {scope or self._file.name} needs it for {used_by}'
            )
        return f".{found}"

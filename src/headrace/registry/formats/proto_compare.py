"""Finding the differences of two Protobuf schemas: what `proto_rules.py` judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from google.protobuf import descriptor_pb2 as pb

from headrace.registry.formats.base import Difference
from headrace.registry.formats.proto_files import Kinds
from headrace.registry.formats.proto_rules import Change, told

_F = pb.FieldDescriptorProto
_GROUPS = {
    "general number": "int32 int64 uint32 uint64 bool enum",
    "signed number": "sint32 sint64",
    "string or bytes": "string bytes",
    "fixed32": "fixed32 sfixed32",
    "fixed64": "fixed64 sfixed64",
    "float": "float",
    "double": "double",
}
"""Scalars of one group can be read as each other (protobuf.dev, "Updating a message type")."""
_GROUP_OF = {
    _F.Type.Value(f"TYPE_{name.upper()}"): group for group, names in _GROUPS.items() for name in names.split()
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two schemas, with everything it can see."""

    file: pb.FileDescriptorProto
    kinds: Kinds
    messages: dict[str, pb.DescriptorProto]

    @classmethod
    def of(cls, file: pb.FileDescriptorProto, files: Iterable[pb.FileDescriptorProto], kinds: Kinds) -> Side:
        found: dict[str, pb.DescriptorProto] = {}

        def walk(messages: Iterable[pb.DescriptorProto], scope: str) -> None:
            for message in messages:
                name = f"{scope}.{message.name}" if scope else message.name
                found[name] = message
                walk(message.nested_type, name)

        for each in files:
            walk(each.message_type, each.package)
        return cls(file, kinds, found)

    def local(self, full: str) -> str:
        """A type's name without its package."""
        package = self.kinds[full][1].package
        return full.removeprefix(f"{package}.") if package else full

    def entry(self, field: pb.FieldDescriptorProto) -> pb.DescriptorProto | None:
        """The message that a map's field stands for."""
        found = self.messages.get(field.type_name[1:]) if field.type_name else None
        return found if found is not None and found.options.map_entry else None


def differences(old: Side, new: Side) -> list[Difference]:
    """What changed from `old` to `new` and keeps `new` from reading what `old` wrote."""
    return [
        difference for change, path in changes(old, new) if (difference := told(change, path)) is not None
    ]


def changes(old: Side, new: Side) -> list[tuple[Change, str]]:
    """Whatever changed, and where; also what does no harm."""
    walk = _Walk(old, new)
    walk.files()
    return walk.found


class _Walk:
    def __init__(self, old: Side, new: Side) -> None:
        self._old, self._new = old, new
        self._path: list[str] = []
        self._under_way: set[tuple[int, int]] = set()
        self._compared: dict[tuple[str, str], bool] = {}
        self.found: list[tuple[Change, str]] = []

    @contextmanager
    def _in(self, *names: str) -> Iterator[None]:
        self._path += names
        yield
        del self._path[-len(names) :]

    def _note(self, change: Change) -> None:
        noted = change, "#/" + "/".join(self._path)
        if noted not in self.found:
            self.found.append(noted)

    def files(self) -> None:
        old, new = self._old.file, self._new.file
        if old.package != new.package:
            self._note(Change.PACKAGE_CHANGED)
        self._types(old, new)

    def _types(
        self,
        old: pb.FileDescriptorProto | pb.DescriptorProto,
        new: pb.FileDescriptorProto | pb.DescriptorProto,
    ) -> None:
        before, after = _by_name(_nested(old)), _by_name(_nested(new))
        for name in [*before, *(name for name in after if name not in before)]:
            with self._in(name):
                if name not in after:
                    if not before[name].options.map_entry:
                        self._note(Change.MESSAGE_REMOVED)
                elif name not in before:
                    self._note(Change.MESSAGE_ADDED)
                else:
                    self._message(before[name], after[name])
        enums, later = (
            {each.name: each for each in old.enum_type},
            {each.name: each for each in new.enum_type},
        )
        for name in [*enums, *(name for name in later if name not in enums)]:
            with self._in(name):
                if name not in later:
                    self._note(Change.ENUM_REMOVED)
                elif name not in enums:
                    self._note(Change.ENUM_ADDED)
                else:
                    self._enum(enums[name], later[name])

    def _enum(self, old: pb.EnumDescriptorProto, new: pb.EnumDescriptorProto) -> None:
        before = {value.number: value.name for value in old.value}
        after = {value.number: value.name for value in new.value}
        for number in sorted(before.keys() | after.keys()):
            with self._in(str(number)):
                if number not in after:
                    self._note(Change.ENUM_CONST_REMOVED)
                elif number not in before:
                    self._note(Change.ENUM_CONST_ADDED)
                elif before[number] != after[number]:
                    self._note(Change.ENUM_CONST_CHANGED)

    def _message(self, old: pb.DescriptorProto, new: pb.DescriptorProto) -> None:
        pair = id(old), id(new)
        if pair in self._under_way:
            return
        self._under_way.add(pair)
        self._fields(old, new)
        self._types(old, new)
        self._under_way.discard(pair)

    def _fields(self, old: pb.DescriptorProto, new: pb.DescriptorProto) -> None:
        before, after = {each.number: each for each in old.field}, {each.number: each for each in new.field}
        was_in = {number: name for number, field in before.items() if (name := _oneof(old, field))}
        is_in = {number: name for number, field in after.items() if (name := _oneof(new, field))}
        self._oneofs(before, was_in, is_in)
        dropped = {
            name
            for name in set(was_in.values()) - set(is_in.values())
            if not any(number in after for number, of in was_in.items() if of == name)
        }
        for number in sorted(before.keys() | after.keys()):
            was, now = was_in.get(number), is_in.get(number)
            if number not in after:
                if was is None:
                    with self._in(str(number)):
                        self._note(
                            Change.REQUIRED_FIELD_REMOVED
                            if _required(before[number])
                            else Change.FIELD_REMOVED
                        )
                elif was not in dropped:
                    with self._in(was, str(number)):
                        self._note(Change.ONEOF_FIELD_REMOVED)
            elif number not in before:
                if now is not None:
                    with self._in(now, str(number)):
                        self._note(Change.ONEOF_FIELD_ADDED)
                else:
                    with self._in(str(number)):
                        self._note(
                            Change.REQUIRED_FIELD_ADDED if _required(after[number]) else Change.FIELD_ADDED
                        )
            else:
                with self._in(*((now, str(number)) if now is not None else (str(number),))):
                    if was is not None and now is None:
                        self._note(Change.ONEOF_FIELD_MOVED_TO_TOP_LEVEL)
                    self._field(before[number], after[number])

    def _oneofs(
        self, before: dict[int, pb.FieldDescriptorProto], was_in: dict[int, str], is_in: dict[int, str]
    ) -> None:
        """Fields that could be set together must not become exclusive: what was written with both would be read with one."""
        for name in dict.fromkeys(is_in.values()):
            members = [number for number, of in is_in.items() if of == name and number in before]
            from_top = [number for number in members if number not in was_in]
            origins = {was_in.get(number, str(number)) for number in members}
            with self._in(name):
                if len(origins) > 1:
                    several = len(from_top) > 1
                    self._note(
                        Change.MULTIPLE_FIELDS_MOVED_TO_ONEOF
                        if several
                        else Change.FIELD_MOVED_TO_EXISTING_ONEOF
                    )
        for name in sorted(set(was_in.values()) ^ set(is_in.values())):
            with self._in(name):
                self._note(Change.ONEOF_ADDED if name in is_in.values() else Change.ONEOF_REMOVED)

    def _field(self, old: pb.FieldDescriptorProto, new: pb.FieldDescriptorProto) -> None:
        if old.name != new.name:
            self._note(Change.FIELD_NAME_CHANGED)
        self._kinds(old, new, labels=True)

    def _kinds(self, old: pb.FieldDescriptorProto, new: pb.FieldDescriptorProto, *, labels: bool) -> None:
        before, after = self._old.entry(old), self._new.entry(new)
        if before is not None and after is not None:
            for number in range(2):
                self._kinds(before.field[number], after.field[number], labels=False)
            return
        group, other = _GROUP_OF.get(old.type), _GROUP_OF.get(new.type)
        if before is not None or after is not None or (group is None) != (other is None):
            self._note(Change.FIELD_KIND_CHANGED)
        elif group is None:
            self._named(old.type_name[1:], new.type_name[1:])
        elif group != other:
            self._note(Change.FIELD_SCALAR_KIND_CHANGED)
        elif labels and _plural(old) != _plural(new):
            text = group == "string or bytes"
            self._note(
                Change.FIELD_STRING_OR_BYTES_LABEL_CHANGED if text else Change.FIELD_NUMERIC_LABEL_CHANGED
            )

    def _named(self, old: str, new: str) -> None:
        if self._old.local(old) != self._new.local(new):
            self._note(Change.FIELD_NAMED_TYPE_CHANGED)
            return
        if (
            self._old.kinds[old][1].name == self._old.file.name
            and self._new.kinds[new][1].name == self._new.file.name
        ):
            return  # both stand in the files that are compared anyway
        known = self._compared.get((old, new))
        if known is None:
            self._compared[old, new] = True  # while it is compared it counts as compatible
            inner = _Walk(self._old, self._new)
            inner._compared = self._compared
            inner._path = self._old.local(old).split(".")
            inner._message(self._old.messages[old], self._new.messages[new])
            self.found += [each for each in inner.found if each not in self.found]
            known = not any(told(*each) for each in inner.found)
            self._compared[old, new] = known
        if not known:
            self._note(Change.FIELD_NAMED_TYPE_CHANGED)


def _nested(of: pb.FileDescriptorProto | pb.DescriptorProto) -> Iterable[pb.DescriptorProto]:
    found: Iterable[pb.DescriptorProto]
    found = of.message_type if isinstance(of, pb.FileDescriptorProto) else of.nested_type
    return found


def _by_name(messages: Iterable[pb.DescriptorProto]) -> dict[str, pb.DescriptorProto]:
    return {message.name: message for message in messages}


def _oneof(message: pb.DescriptorProto, field: pb.FieldDescriptorProto) -> str | None:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return str(message.oneof_decl[field.oneof_index].name)


def _required(field: pb.FieldDescriptorProto) -> bool:
    return bool(field.label == _F.LABEL_REQUIRED)


def _plural(field: pb.FieldDescriptorProto) -> bool:
    return bool(field.label == _F.LABEL_REPEATED)

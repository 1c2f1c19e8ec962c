"""Records in the wire format of schema registries: a zero byte, the schema's id, the data. To JSON's values and back.

Reading takes each record by the schema it was written with; writing takes the newest version of a subject.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.client.errors import SerializationError, require
from headrace.client.registry_rest import RegistryError, RegistryRest

if TYPE_CHECKING:
    from google.protobuf.message import Message

_HEAD = struct.Struct(">bI")
_MAGIC = 0

Read = Callable[[bytes], Any]
Write = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class _Schema:
    number: int
    kind: str
    text: str
    references: list[dict[str, Any]]


class RegistryCodec:
    def __init__(self, rest: RegistryRest) -> None:
        self._rest = rest
        self._readers: dict[int, Read | None] = {}
        self._writers: dict[str, Write] = {}

    def decode(self, data: bytes) -> Any:
        """The value as JSON has it. SerializationError for what is not of this format, or has no known schema."""
        if len(data) < _HEAD.size or data[0] != _MAGIC:
            raise SerializationError("the data does not begin with a schema's id")
        number = _HEAD.unpack_from(data)[1]
        if number not in self._readers:
            self._readers[number] = self._reader(number)
        read = self._readers[number]
        if read is None:
            raise SerializationError(f"the registry has no schema with the id {number}")
        try:
            return read(data[_HEAD.size :])
        except (ValueError, TypeError, EOFError, IndexError, KeyError) as error:
            raise SerializationError(
                f"the data does not fit the schema with the id {number}: {error}"
            ) from None

    def encode(self, subject: str, value: Any) -> bytes:
        """A value under the newest schema of a subject. SerializationError when it does not fit."""
        write = self._writers.get(subject)
        if write is None:
            found = self._rest.ask("GET", "subjects", subject, "versions", "latest")
            schema = _Schema(
                found["id"], found.get("schemaType", "AVRO"), found["schema"], found.get("references") or []
            )
            write = self._writers[subject] = self._writer(schema)
        try:
            return write(value)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise SerializationError(
                f"the value does not fit the newest schema of {subject}: {error}"
            ) from None

    def _reader(self, number: int) -> Read | None:
        try:
            found = self._rest.ask("GET", "schemas", "ids", number)
        except RegistryError as error:
            if error.code != 40403:
                raise
            return None
        schema = _Schema(
            number, found.get("schemaType", "AVRO"), found["schema"], found.get("references") or []
        )
        match schema.kind:
            case "AVRO":
                return self._avro(schema)[0]
            case "PROTOBUF":
                return self._protobuf(schema)[0]
            case _:
                return json.loads

    def _writer(self, schema: _Schema) -> Write:
        match schema.kind:
            case "AVRO":
                write = self._avro(schema)[1]
            case "PROTOBUF":
                write = self._protobuf(schema)[1]
            case _:
                write = _json_bytes
        head = _HEAD.pack(_MAGIC, schema.number)
        return lambda value: head + write(value)

    def _avro(self, schema: _Schema) -> tuple[Read, Write]:
        fastavro = require("fastavro", "avro", "Avro")
        named: dict[str, Any] = {}
        for text in self._texts(schema.references, {}, "").values():
            fastavro.parse_schema(json.loads(text), named_schemas=named)
        parsed = fastavro.parse_schema(_loads(schema.text), named_schemas=named)

        def read(data: bytes) -> Any:
            return _plain(fastavro.schemaless_reader(io.BytesIO(data), parsed, None))

        def write(value: Any) -> bytes:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, value)
            return out.getvalue()

        return read, write

    def _protobuf(self, schema: _Schema) -> tuple[Read, Write]:
        require("google.protobuf", "protobuf", "Protobuf")
        from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

        pool = descriptor_pool.DescriptorPool()
        found = self._rest.ask("GET", "schemas", "ids", schema.number, format="serialized")
        texts = {**self._texts(schema.references, {}, "serialized"), "": found["schema"]}
        added: set[str] = set()
        for name, text in texts.items():
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
            file.name = name or f"schema-{schema.number}.proto"
            for needed in file.dependency:
                _add_known(pool, needed, added, texts)
            pool.Add(file)
        top = pool.FindFileByName(f"schema-{schema.number}.proto")

        def message(path: list[int]) -> Message:
            described = list(top.message_types_by_name.values())[path[0]]
            for place in path[1:]:
                described = described.nested_types[place]
            made: Message = message_factory.GetMessageClass(described)()
            return made

        def read(data: bytes) -> Any:
            path, place = _read_path(data)
            found = message(path)
            found.ParseFromString(data[place:])
            return json_format.MessageToDict(found, preserving_proto_field_name=True)

        def write(value: Any) -> bytes:
            try:
                data: bytes = json_format.ParseDict(value, message([0])).SerializeToString()
                return b"\0" + data
            except json_format.ParseError as error:
                raise ValueError(str(error)) from None

        return read, write

    def _texts(self, references: list[dict[str, Any]], found: dict[str, str], format: str) -> dict[str, str]:
        """What references stand for, by name, those first that others need."""
        for reference in references:
            if reference["name"] in found:
                continue
            query = {"format": format} if format else {}
            answer = self._rest.ask(
                "GET",
                "subjects",
                reference["subject"],
                "versions",
                reference["version"],
                deleted=True,
                **query,
            )
            self._texts(answer.get("references") or [], found, format)
            found[reference["name"]] = answer["schema"]
        return found


def _add_known(pool: Any, name: str, added: set[str], given: dict[str, str]) -> None:
    """A file that comes with protobuf, and what it needs."""
    if name in given or name in added:
        return
    from importlib import import_module

    try:
        module = import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    except ImportError:
        raise SerializationError(f"the schema imports {name}, which is not installed here") from None
    for needed in module.DESCRIPTOR.dependencies:
        _add_known(pool, needed.name, added, given)
    pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    added.add(name)


def _read_path(data: bytes) -> tuple[list[int], int]:
    """Which message of the file the data is, and where it begins: zigzag numbers, a single 0 for the first."""
    count, place = _varint(data, 0)
    if count == 0:
        return [0], place
    path = []
    for _ in range(count):
        number, place = _varint(data, place)
        path.append(number)
    return path, place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), place
        shift += 7


def _loads(text: str) -> Any:
    """An Avro schema; the bare name of a type is none in JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    """What Avro's logical types and bytes are in JSON."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)

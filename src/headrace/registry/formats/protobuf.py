"""Protobuf: .proto text or a descriptor in, canonical text out; protobuf's own descriptor pool judges what is valid."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from google.protobuf import descriptor_pb2 as pb

from headrace.registry.errors import InvalidSchema
from headrace.registry.formats.base import Difference, Parsed
from headrace.registry.formats.proto_compare import Side, differences
from headrace.registry.formats.proto_files import Kinds, link, read_file
from headrace.registry.formats.proto_print import print_file

KIND = "PROTOBUF"
_NAME = "default.proto"


def read(text: str, references: Mapping[str, str], *, new: bool) -> ProtobufSchema:
    try:
        file = read_file(text, _NAME)
        kinds, files = link(file, references)
        return ProtobufSchema(file, files, kinds)
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None


class ProtobufSchema:
    kind = KIND

    def __init__(
        self, file: pb.FileDescriptorProto, files: list[pb.FileDescriptorProto], kinds: Kinds
    ) -> None:
        self._file = file
        self._kinds = kinds
        self._side = Side.of(file, files, kinds)
        self.canonical = print_file(file, kinds)

    def normalized(self) -> str:
        return print_file(self._file, self._kinds, normal=True)

    def formatted(self, format: str) -> str:
        """`serialized` is the descriptor in base64, which clients without a parser ask for."""
        if format == "serialized":
            return base64.b64encode(self._file.SerializeToString(deterministic=True)).decode()
        return self.canonical

    def inlined(self) -> str | None:
        return None

    def differences_to(self, writer: Parsed, *, lenient: bool = False) -> Sequence[Difference]:
        assert isinstance(writer, ProtobufSchema)
        return differences(writer._side, self._side)

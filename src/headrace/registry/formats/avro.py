"""Avro: validity and compatibility are the `avro` library's, texts are ours (`avro_text.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from avro.compatibility import (
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
    lookup_writer_field,
)
from avro.errors import AvroException
from avro.name import Names
from avro.schema import (
    EnumSchema,
    FixedSchema,
    NamedSchema,
    RecordSchema,
    Schema,
    UnionSchema,
    make_avsc_object,
)

from headrace.registry.errors import InvalidSchema
from headrace.registry.formats import avro_text
from headrace.registry.formats.base import Difference, Parsed, check_depth

KIND = "AVRO"

_TEXTS = {
    "fixed_size_mismatch": "The size of FIXED type field at path '{path}' in the %s schema does not match with the %s schema",
    "type_mismatch": "The type (path '{path}') of a field in the %s schema does not match with the %s schema",
    "name_mismatch": "The name of the schema has changed (path '{path}')",
    "missing_enum_symbols": "The %s schema is missing enum symbols '{more}' at path '{path}' in the %s schema",
    "missing_union_branch": "The %s schema is missing a type inside a union field at path '{path}' in the %s schema",
    "reader_field_missing_default_value": (
        "The field '{more}' at path '{path}' in the %s schema has no default value and is missing in the %s schema"
    ),
}
"""What the checker finds, by its name for it."""


def read(text: str, references: Mapping[str, str], *, new: bool) -> AvroSchema:
    names = Names()
    referred: dict[str, Any] = {}
    for name, source in references.items():
        try:
            document = _document(source)
            parsed = make_avsc_object(document, names)
        except (AvroException, RecursionError) as error:
            raise InvalidSchema(f"the reference {name} cannot be used: {error}") from None
        full = getattr(parsed, "fullname", None)
        if full is not None:
            referred[full] = document
    document = _document(text)
    try:
        # The defaults of schemas that were registered before are not judged again.
        schema = make_avsc_object(document, names)
    except (AvroException, RecursionError, TypeError, ValueError, AttributeError) as error:
        raise InvalidSchema(str(error) or type(error).__name__) from None
    if new:
        _check_defaults(document)
    return AvroSchema(document, schema, referred)


def _document(text: str) -> Any:
    """JSON, or the bare name of a type, as Java's parser takes it."""
    bare = text.strip()
    if bare in avro_text.PRIMITIVES:
        return bare
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"it is no JSON: {error}") from None
    check_depth(document)
    return document


def _check_defaults(schema: Any) -> None:
    """A record's defaults must fit their types as far as types without names go."""
    stack = [schema]
    while stack:
        each = stack.pop()
        if isinstance(each, list):
            stack.extend(each)
        elif isinstance(each, dict):
            stack.extend(value for name, value in each.items() if name in ("type", "items", "values"))
            for field in each.get("fields") or ():
                stack.append(field["type"])
                if "default" in field and not _fits(field["default"], field["type"]):
                    raise InvalidSchema(
                        f"Invalid default for field {field['name']}: {avro_text.compact(field['default'])} not a "
                        f"{avro_text.compact(field['type'])}"
                    )


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, list):
        return any(_fits(value, each) for each in kind)
    if isinstance(kind, dict):
        match kind.get("type"):
            case "array":
                return isinstance(value, list) and all(_fits(each, kind["items"]) for each in value)
            case "map":
                return isinstance(value, dict) and all(_fits(each, kind["values"]) for each in value.values())
            case "enum" | "fixed":
                return isinstance(value, str)
            case "record" | "error":
                return isinstance(value, dict)
            case inner:
                return _fits(value, inner)
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = 2**31 if kind == "int" else 2**63
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes":
            return isinstance(value, str)
        case _:
            return True  # a named type that stands elsewhere


class AvroSchema:
    kind = KIND

    def __init__(self, document: Any, schema: Schema, references: dict[str, Any]) -> None:
        self._document = document
        self._schema = schema
        self._references = references
        self.canonical = avro_text.canonical(document)

    def normalized(self) -> str:
        return avro_text.normalized(self._document, self._references)

    def formatted(self, format: str) -> str:
        if format == "resolved":
            return avro_text.canonical(avro_text.resolved(self._document, self._references))
        return self.canonical

    def inlined(self) -> str | None:
        return self.formatted("resolved") if self._references else None

    def differences_to(self, writer: Parsed, *, lenient: bool = False) -> Sequence[Difference]:
        assert isinstance(writer, AvroSchema)
        checker = _Checker()
        try:
            result = checker.get_compatibility(self._schema, writer._schema)
        except RecursionError:
            return [Difference("The schemas are nested too deeply to be compared")]
        if result.compatibility is SchemaCompatibilityType.compatible:
            return []
        return checker.found or [Difference("The schemas are not compatible")]


class _Checker(ReaderWriterCompatibilityChecker):
    """The library's checker gives what it found as sets, from which one cannot tell what belongs to which place. This one notes each
    finding where it is made."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Difference] = []

    def calculate_compatibility(
        self, reader: Schema, writer: Schema, location: list[str]
    ) -> SchemaCompatibilityResult:
        before = len(self.found)
        result = super().calculate_compatibility(reader, writer, location)
        if result.compatibility is not SchemaCompatibilityType.incompatible:
            del self.found[before:]
        elif isinstance(reader, UnionSchema):
            del self.found[before:]  # what was said of each branch that was tried
            lacking = writer.schemas if isinstance(writer, UnionSchema) else [writer]
            for number, branch in enumerate(lacking):
                if isinstance(writer, UnionSchema):
                    tried = self.get_compatibility(reader, branch)  # it is known by now
                    if tried.compatibility is SchemaCompatibilityType.compatible:
                        continue
                place = [*location, str(number)] if isinstance(writer, UnionSchema) else location
                told = f"reader union lacking writer type: {branch.type.upper()}"
                self._note("missing_union_branch", place, told)
        elif not isinstance(writer, UnionSchema):
            self._note_leaves(reader, writer, location, result)
        return result

    def _note_leaves(
        self, reader: Schema, writer: Schema, location: list[str], result: SchemaCompatibilityResult
    ) -> None:
        if reader.type != writer.type:
            told = (
                f"reader type: {reader.type.upper()} not compatible with writer type: {writer.type.upper()}"
            )
            self._note("type_mismatch", location, told)
            return
        kinds = {kind.name for kind in result.incompatibilities}
        if isinstance(reader, NamedSchema) and isinstance(writer, NamedSchema):
            if "name_mismatch" in kinds and reader.name != writer.name:
                self._note("name_mismatch", [*location, "name"], f"expected: {writer.fullname}")
            if (
                isinstance(reader, FixedSchema)
                and isinstance(writer, FixedSchema)
                and reader.size != writer.size
            ):
                told = f"expected: {writer.size}, found: {reader.size}"
                self._note("fixed_size_mismatch", [*location, "size"], told)
            if isinstance(reader, EnumSchema) and isinstance(writer, EnumSchema):
                missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
                if missing and "missing_enum_symbols" in kinds:
                    self._note("missing_enum_symbols", [*location, "symbols"], f"[{', '.join(missing)}]")
        if isinstance(reader, RecordSchema) and isinstance(writer, RecordSchema):
            for number, field in enumerate(reader.fields):
                if lookup_writer_field(writer, field) is None and not field.has_default:
                    self._note(
                        "reader_field_missing_default_value", [*location, "fields", str(number)], field.name
                    )

    def _note(self, kind: str, location: list[str], more: str) -> None:
        path = "/".join(location)[1:] if len(location) > 1 else location[0]
        text = _TEXTS[kind].format(path=path, more=more)
        noted = Difference(f"{{errorType:'{kind.upper()}', description:'{text}', additionalInfo:'{more}'}}")
        if noted not in self.found:
            self.found.append(noted)

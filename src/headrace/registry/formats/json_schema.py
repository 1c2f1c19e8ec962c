"""JSON Schema: validity is `jsonschema-rs`'s, references and compatibility are ours. Nothing is ever fetched from the network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema_rs

from headrace.registry.errors import InvalidSchema
from headrace.registry.formats.base import Difference, Parsed, check_depth
from headrace.registry.formats.json_compare import TooComplex, differences
from headrace.registry.formats.json_view import META_SCHEMAS, Documents

KIND = "JSON"
_BASE = "json-schema:///"
"""What jsonschema-rs puts in front of a reference where there is no $id."""


def read(text: str, references: Mapping[str, str], *, new: bool) -> JsonSchema:
    document = _document(text)
    others = {}
    for name, source in references.items():
        try:
            others[name] = _document(source)
        except InvalidSchema as error:
            raise InvalidSchema(f"the reference {name} cannot be used: {error}") from None
    documents = Documents(document, others)
    documents.check_references()
    _validate(document, documents)
    return JsonSchema(document, documents)


def _document(text: str) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"it is no JSON: {error}") from None
    check_depth(document)
    if not isinstance(document, dict | bool):
        raise InvalidSchema("it is neither an object nor true or false")
    return document


def _validate(document: Any, documents: Documents) -> None:
    def retrieve(address: str) -> Any:
        for known in (address, address.removeprefix(_BASE)):
            try:
                return documents.document(known)
            except KeyError:
                continue
        raise ValueError(f"{address} is not among the references")

    draft = document.get("$schema") if isinstance(document, dict) else None
    judged = document
    if isinstance(draft, str) and not draft.startswith(META_SCHEMAS):
        judged = {name: value for name, value in document.items() if name != "$schema"}
    make = jsonschema_rs.validator_for if judged is document and draft else jsonschema_rs.Draft7Validator
    try:
        make(judged, retriever=retrieve)
    except jsonschema_rs.ValidationError as error:
        place = "/".join(map(str, error.instance_path))
        raise InvalidSchema(f"#/{place}: {error.message}") from None
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidSchema(str(error)) from None


class JsonSchema:
    kind = KIND

    def __init__(self, document: Any, documents: Documents) -> None:
        self._document = document
        self._documents = documents
        self.canonical = json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    def normalized(self) -> str:
        return json.dumps(self._document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def formatted(self, format: str) -> str:
        return self.canonical

    def inlined(self) -> str | None:
        return None

    def differences_to(self, writer: Parsed, *, lenient: bool = False) -> Sequence[Difference]:
        assert isinstance(writer, JsonSchema)
        try:
            found = differences(writer._documents, self._documents, lenient=lenient)
        except (TooComplex, RecursionError):
            return [Difference("The schemas are too complex to be compared")]
        return [each.told() for each in found]

"""The records of `_schemas`, in the format that Confluent's registry and Karapace share.

Keys are JSON with their fields in one order, because compaction compares bytes. Values may hold more than is read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import md5
from typing import Any

import msgspec

from headrace.registry.content import Content, digest
from headrace.registry.formats.base import Reference

TOPIC = "_schemas"
SCHEMA, CONFIG, MODE, CONTEXT = "SCHEMA", "CONFIG", "MODE", "CONTEXT"
DELETE_SUBJECT, CLEAR_SUBJECT, NOOP = "DELETE_SUBJECT", "CLEAR_SUBJECT", "NOOP"


class Key(msgspec.Struct, frozen=True):
    keytype: str
    subject: str | None = None
    version: int = 0
    context: str | None = None
    magic: int = 0


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class SchemaValue(msgspec.Struct):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: str
    schemaType: str | None = None
    references: list[_Reference] | None = None
    metadata: dict[str, Any] | None = None
    ruleSet: dict[str, Any] | None = None
    deleted: bool = False

    def referred(self) -> tuple[Reference, ...]:
        return tuple(Reference(each.name, each.subject, each.version) for each in self.references or ())

    def content(self) -> Content:
        kind = self.schemaType or "AVRO"
        return Content(self.schema, kind, self.referred(), self.metadata, self.ruleSet)

    def digest(self) -> bytes:
        if self.references is None and self.metadata is None and self.ruleSet is None:
            return md5(self.schema.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
        return digest(self.schema, self.referred(), self.metadata, self.ruleSet)


class _SubjectVersion(msgspec.Struct):
    subject: str
    version: int = 0


_KEYS = msgspec.json.Decoder(Key)
_SCHEMAS = msgspec.json.Decoder(SchemaValue)
_SUBJECT_VERSIONS = msgspec.json.Decoder(_SubjectVersion)
_OBJECTS = msgspec.json.Decoder(dict[str, Any])

Unreadable = msgspec.DecodeError
"""Raised by all of the following for what has another form."""


def read_key(data: bytes) -> Key:
    return _KEYS.decode(data)


def read_schema(data: bytes) -> SchemaValue:
    return _SCHEMAS.decode(data)


def read_deletion(data: bytes) -> tuple[str, int]:
    found = _SUBJECT_VERSIONS.decode(data)
    return found.subject, found.version


def read_object(data: bytes) -> dict[str, Any]:
    return _OBJECTS.decode(data)


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def schema_key(subject: str, version: int) -> bytes:
    return _text({"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1})


def subject_key(kind: str, subject: str | None) -> bytes:
    """Of a CONFIG, a MODE, a DELETE_SUBJECT or a CLEAR_SUBJECT; None stands for the top level."""
    named = {} if subject is None else {"subject": subject}
    return _text({"keytype": kind, **named, "magic": 0})


def context_key(context: str) -> bytes:
    return _text({"keytype": CONTEXT, "tenant": "default", "context": context, "magic": 0})


NOOP_KEY = _text({"keytype": NOOP, "magic": 0})


def schema_value(
    subject: str, version: int, number: int, content: Content, *, deleted: bool = False
) -> bytes:
    head = {"subject": subject, "version": version, "id": number}
    return _text({**head, **content.fields(), "deleted": deleted})


def deletion_value(subject: str, version: int) -> bytes:
    return _text({"subject": subject, "version": version})


def clearing_value(subject: str | None) -> bytes:
    return _text({} if subject is None else {"subject": subject})


def context_value(context: str) -> bytes:
    return _text({"tenant": "default", "context": context})


def config_value(subject: str | None, config: Mapping[str, Any]) -> bytes:
    named = {} if subject is None else {"subject": subject}
    return _text({**named, **config})


def mode_value(subject: str | None, mode: str) -> bytes:
    named = {} if subject is None else {"subject": subject}
    return _text({**named, "mode": mode})

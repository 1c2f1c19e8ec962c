"""Requests and replies in Confluent's form: what is read from a body and a query, and how versions and errors look."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from headrace.registry.changes import Registered, Registration
from headrace.registry.content import (
    AVRO,
    Content,
    checked_metadata,
    checked_references,
    checked_rule_set,
    guid_of,
)
from headrace.registry.errors import RegistryError, invalid_schema, unprocessable
from headrace.registry.parsing import KINDS
from headrace.registry.state import Entry

LARGEST_BODY = 16 << 20
CONTENT_TYPE = b"application/vnd.schemaregistry.v1+json"

Scope = MutableMapping[str, Any]


class Query:
    """The part behind the question mark."""

    def __init__(self, raw: bytes) -> None:
        self._found: dict[str, list[str]] = {}
        for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True):
            self._found.setdefault(name, []).append(value)

    def text(self, name: str, default: str = "") -> str:
        return self._found.get(name, [default])[0]

    def all(self, name: str) -> list[str]:
        return self._found.get(name, [])

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def number(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise unprocessable(f"{name} is a number, not '{text}'") from None

    def page(self, listed: list[Any]) -> list[Any]:
        """What `offset` and `limit` leave of a list."""
        offset, limit = max(self.number("offset", 0), 0), self.number("limit", -1)
        return listed[offset:] if limit < 0 else listed[offset : offset + limit]


def read_object(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise RegistryError(400, f"The body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise unprocessable("The body is no JSON object")
    return found


def read_content(request: Mapping[str, Any]) -> Content:
    text, kind = request.get("schema"), request.get("schemaType") or AVRO
    if text is None:
        text = ""
    if not isinstance(text, str):
        raise unprocessable("schema is text: JSON goes into it as a string")
    if not isinstance(kind, str) or kind.upper() not in KINDS:
        raise invalid_schema(f"Invalid schema type {kind}")
    return Content(
        text,
        kind.upper(),
        checked_references(request.get("references")),
        checked_metadata(request.get("metadata")),
        checked_rule_set(request.get("ruleSet")),
    )


def read_registration(
    subject: str, request: Mapping[str, Any], *, normalize: bool, force: bool
) -> Registration:
    for name in ("schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags"):
        if request.get(name):
            raise unprocessable(f"{name} is not supported: change the tags in the schema and register that")
    version, number = request.get("version"), request.get("id")
    for name, value in (("version", version), ("id", number)):
        if value is not None and type(value) is not int:
            raise unprocessable(f"{name} is a number")
    return Registration(
        subject,
        read_content(request),
        version if version is not None else 0,
        number if number is not None else -1,
        normalize,
        force,
    )


# Replies. With `full` they hold what only newer clients know (Confluent-Accept-Unknown-Properties).


def _extras(content: Content, *, full: bool) -> dict[str, Any]:
    fields = content.fields()
    return {"schemaType": AVRO, **fields} if full else fields


def version_reply(entry: Entry, *, full: bool, text: str | None = None) -> dict[str, Any]:
    content = entry.content()
    if text is not None:
        content = content.with_text(text)
    found: dict[str, Any] = {"subject": entry.subject, "version": entry.version, "id": entry.id}
    if full:
        found["guid"] = entry.guid
    found |= _extras(content, full=full)
    if full and entry.deleted:
        found["deleted"] = True
    return found


def schema_reply(entry: Entry, *, full: bool, named: bool, text: str | None = None) -> dict[str, Any]:
    """A schema by its id; `named` when it was asked for under a subject."""
    content = entry.content()
    if text is not None:
        content = content.with_text(text)
    found: dict[str, Any] = {}
    if full and named:
        found = {"subject": entry.subject, "version": entry.version}
    if full:
        found["guid"] = entry.guid
    return found | _extras(content, full=full)


def registered_reply(registered: Registered, asked: Content, *, full: bool) -> dict[str, Any]:
    """The reply repeats what was registered only where that differs from the request: a client keeps the text it sent."""
    if not full:
        return {"id": registered.id}
    content = registered.content
    found: dict[str, Any] = {
        "id": registered.id,
        "version": registered.version,
        "guid": guid_of(content.digest()),
    }
    same = (asked.metadata, asked.rule_set) == (content.metadata, content.rule_set) and asked.text.strip()
    return found if same else found | _extras(content, full=True)


def encode(reply: Any) -> bytes:
    return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

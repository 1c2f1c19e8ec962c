"""Schemas with their references, parsed in a thread and kept for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Executor

from headrace.registry import names
from headrace.registry.content import AVRO, Content
from headrace.registry.errors import InvalidSchema
from headrace.registry.formats.base import Parsed, Reader, Reference
from headrace.registry.state import Entry, State

KINDS = ("JSON", "PROTOBUF", AVRO)
_KEPT = 500
_MOST_REFERENCES = 1000


def reader_of(kind: str) -> Reader:
    """A format's module is imported when it is first needed: they take longer than all else."""
    match kind:
        case "AVRO":
            from headrace.registry.formats import avro

            return avro.read
        case "JSON":
            from headrace.registry.formats import json_schema

            return json_schema.read
        case "PROTOBUF":
            from headrace.registry.formats import protobuf

            return protobuf.read
        case _:
            raise InvalidSchema(f"Invalid schema type {kind}")


class Parser:
    def __init__(self, state: State, threads: Executor) -> None:
        self._state = state
        self._threads = threads
        self._kept: OrderedDict[tuple[object, ...], Parsed] = OrderedDict()

    async def parse(self, subject: str, content: Content, *, new: bool = False) -> Parsed:
        """InvalidSchema when it is none."""
        texts = self.resolve(subject, content.references)
        key = content.kind, content.text, new, tuple(texts.items())
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        read = reader_of(content.kind)
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: read(content.text, texts, new=new)
        )
        self._kept[key] = found
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    async def entry(self, entry: Entry) -> Parsed:
        return await self.parse(entry.subject, entry.content())

    def resolve(self, subject: str, references: Sequence[Reference]) -> dict[str, str]:
        """The texts behind references and theirs, by name, those first that others refer to."""
        found: dict[str, str] = {}
        self._resolve(subject, references, found, [])
        return found

    def _resolve(
        self,
        parent: str,
        references: Sequence[Reference],
        found: dict[str, str],
        above: list[tuple[str, int]],
    ) -> None:
        for reference in references:
            if reference.name in found:
                continue
            subject = names.beside(parent, reference.subject)
            latest = reference.version == -1
            entry = self._state.latest(subject) if latest else self._state.entry(subject, reference.version)
            if entry is None:
                raise InvalidSchema(
                    f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
                )
            place = entry.subject, entry.version
            if place in above:
                raise InvalidSchema(f"the references go in a circle through {place[0]} version {place[1]}")
            if len(above) >= 50 or len(found) >= _MOST_REFERENCES:
                raise InvalidSchema("there are too many references")
            content = entry.content()
            self._resolve(subject, content.references, found, [*above, place])
            found[reference.name] = content.text

"""What `_schemas` says: a state machine that applies its records in order. Two instances that have read as far know the same.

A record that would give an id to a second schema of a context is not applied, by any instance: the first one has it.
Schemas stay as the bytes of their records until somebody asks for one; 100,000 of them fit into 100 MB.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from headrace.registry import names, records
from headrace.registry.content import Content, guid_of
from headrace.registry.formats.base import Reference

log = logging.getLogger("headrace.registry")

Place = tuple[str, int]
"""A subject and a version."""


_KEY_BEGINS = b'{"keytype":"SCHEMA","subject":"'


class Entry:
    """One version of a subject."""

    __slots__ = ("deleted", "digest", "id", "offset", "raw", "subject", "version")

    def __init__(
        self, subject: str, version: int, number: int, digest: bytes, raw: bytes, deleted: bool, offset: int
    ) -> None:
        self.subject = subject
        self.version = version
        self.id = number
        self.digest = digest
        self.raw = raw
        """The record's value."""
        self.deleted = deleted
        """Softly: it is found by its id, and under its subject only by those who ask for deleted versions."""
        self.offset = offset

    def content(self) -> Content:
        return records.read_schema(self.raw).content()

    @property
    def guid(self) -> str:
        return guid_of(self.digest)


class Context:
    __slots__ = ("by_digest", "by_id", "highest_id", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.by_id: dict[int, Entry | list[Entry]] = {}
        self.by_digest: dict[bytes, int] = {}
        self.highest_id = 0
        """Ever given, whatever has been deleted since."""

    def entries(self, number: int) -> list[Entry]:
        found = self.by_id.get(number)
        return [] if found is None else [found] if isinstance(found, Entry) else found


class Applied(Enum):
    YES = "yes"
    ID_TAKEN = "id taken"
    """Another schema of the context has the id."""
    UNREADABLE = "unreadable"


class State:
    def __init__(self) -> None:
        self.end = 0
        """The offset after the last record that was applied."""
        self.subjects: dict[str, list[Entry]] = {}
        """By version, the lowest first."""
        self._contexts: dict[str, Context] = {}
        self.known_contexts: set[str] = set()
        self._configs: dict[str | None, dict[str, Any]] = {}
        self._modes: dict[str | None, str] = {}
        self._referrers: dict[Place, set[Place]] = {}
        self._odd_keys: dict[tuple[str, str | None, int], bytes] = {}
        """Keys that another registry wrote in another form, to be written in that form again."""

    # Questions.

    def context(self, name: str) -> Context:
        found = self._contexts.get(name)
        if found is None:
            found = self._contexts[name] = Context(name)
        return found

    def contexts(self) -> list[str]:
        """Those with a name, in order."""
        return sorted(self.known_contexts)

    def entry(self, subject: str, version: int) -> Entry | None:
        return next((each for each in self.subjects.get(subject, ()) if each.version == version), None)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Entry]:
        return [each for each in self.subjects.get(subject, ()) if deleted or not each.deleted]

    def latest(self, subject: str) -> Entry | None:
        return next((each for each in reversed(self.subjects.get(subject, ())) if not each.deleted), None)

    def by_id(self, context: str, number: int) -> list[Entry]:
        """The versions that have this id; what they say is the same."""
        found = self._contexts.get(context)
        return found.entries(number) if found is not None else []

    def id_of(self, context: str, digest: bytes) -> int | None:
        found = self._contexts.get(context)
        return found.by_digest.get(digest) if found is not None else None

    def highest_id(self, context: str) -> int:
        found = self._contexts.get(context)
        return found.highest_id if found is not None else 0

    def matching(self, scope: str | None, *, deleted: bool) -> Iterator[str]:
        """The subjects that a scope covers and that have a version."""
        if scope is not None and not names.is_context(scope):
            if self.versions(scope, deleted=deleted):
                yield scope
            return
        for subject in self.subjects:
            if names.is_within(subject, scope) and self.versions(subject, deleted=deleted):
                yield subject

    def has(self, scope: str, *, deleted: bool) -> bool:
        return next(self.matching(scope, deleted=deleted), None) is not None

    def config(self, subject: str | None) -> Mapping[str, Any] | None:
        return self._configs.get(subject)

    def mode(self, subject: str | None) -> str | None:
        return self._modes.get(subject)

    def modes_under(self, context: str) -> list[str]:
        return [
            subject
            for subject in self._modes
            if subject is not None and not names.is_context(subject) and names.is_within(subject, context)
        ]

    def referrers(self, subject: str, version: int, *, deleted: bool) -> list[Entry]:
        """The versions that refer to one."""
        found = (self.entry(*place) for place in sorted(self._referrers.get((subject, version), ())))
        return [each for each in found if each is not None and (deleted or not each.deleted)]

    def key(self, kind: str, subject: str | None, version: int = 0) -> bytes:
        """The key of a record as it stands in the topic, or as it is to be written."""
        odd = self._odd_keys.get((kind, subject, version))
        if odd is not None:
            return odd
        if kind == records.SCHEMA:
            return records.schema_key(subject or "", version)
        return records.subject_key(kind, subject)

    # Records.

    def apply(self, key: bytes | None, value: bytes | None, offset: int) -> Applied:
        self.end = offset + 1
        if key is None:
            return Applied.UNREADABLE
        try:
            return self._apply(records.read_key(key), key, value, offset)
        except records.Unreadable as error:
            log.warning("the record at offset %d of the schemas' topic cannot be read: %s", offset, error)
            return Applied.UNREADABLE

    def _apply(self, key: records.Key, raw_key: bytes, value: bytes | None, offset: int) -> Applied:
        kind, subject = key.keytype, key.subject
        if kind == records.SCHEMA and subject is not None:
            if value is None:
                self._remove(subject, key.version)
                return Applied.YES
            return self._put(key, raw_key, value, offset)
        if kind in (records.CONFIG, records.MODE):
            if raw_key != records.subject_key(kind, subject):
                self._odd_keys[kind, subject, 0] = raw_key
            self._set(kind, subject, value)
        elif kind == records.CONTEXT and key.context is not None:
            (self.known_contexts.discard if value is None else self.known_contexts.add)(key.context)
        elif kind == records.DELETE_SUBJECT and value is not None:
            self._delete(*records.read_deletion(value))
        elif kind == records.CLEAR_SUBJECT and value is not None:
            self._clear(subject)
        return Applied.YES

    def _put(self, key: records.Key, raw_key: bytes, value: bytes, offset: int) -> Applied:
        subject, version = key.subject or "", key.version
        found = records.read_schema(value)
        digest = found.digest()
        context = self.context(names.context_of(subject))
        others = context.by_id.get(found.id)
        if others is not None:
            other = others if isinstance(others, Entry) else others[0]
            if other.digest != digest and other.content().text != found.schema:
                log.error(
                    "version %d of %s at offset %d has the id %d, which another schema has: it is left out",
                    version,
                    subject,
                    offset,
                    found.id,
                )
                return Applied.ID_TAKEN
        if not raw_key.startswith(_KEY_BEGINS) or not raw_key.endswith(
            b'","version":%d,"magic":1}' % version
        ):
            self._odd_keys[records.SCHEMA, subject, version] = raw_key
        before = self.entry(subject, version) if subject in self.subjects else None
        if before is not None:
            self._take_out(before, context)
        entry = Entry(subject, version, found.id, digest, value, found.deleted, offset)
        self._insert(entry, context)
        for reference in found.referred() if found.references else ():
            self._referrers.setdefault(self._place(subject, reference), set()).add((subject, version))
        if context.name != names.DEFAULT_CONTEXT:
            self.known_contexts.add(context.name)
        return Applied.YES

    def _insert(self, entry: Entry, context: Context) -> None:
        listed = self.subjects.get(entry.subject)
        if listed is None:
            self.subjects[entry.subject] = [entry]
        else:
            entry.subject = listed[0].subject if listed else entry.subject  # one text for all versions
            listed.append(entry)
            if len(listed) > 1 and listed[-2].version > entry.version:
                listed.sort(key=lambda each: each.version)
        have = context.by_id.get(entry.id)
        if have is None:
            context.by_id[entry.id] = entry
        elif isinstance(have, Entry):
            context.by_id[entry.id] = [have, entry]
        else:
            have.append(entry)
        context.by_digest[entry.digest] = entry.id
        context.highest_id = max(context.highest_id, entry.id)

    def _take_out(self, entry: Entry, context: Context) -> None:
        listed = self.subjects[entry.subject]
        listed.remove(entry)
        if not listed:
            del self.subjects[entry.subject]
        have = context.by_id[entry.id]
        left = [each for each in context.entries(entry.id) if each is not entry]
        if not left:
            del context.by_id[entry.id]
            if context.by_digest.get(entry.digest) == entry.id:
                del context.by_digest[entry.digest]
        elif isinstance(have, list):
            context.by_id[entry.id] = left if len(left) > 1 else left[0]
        for reference in records.read_schema(entry.raw).referred():
            place = self._place(entry.subject, reference)
            referrers = self._referrers.get(place)
            if referrers is not None:
                referrers.discard((entry.subject, entry.version))
                if not referrers:
                    del self._referrers[place]

    @staticmethod
    def _place(subject: str, reference: Reference) -> Place:
        return names.beside(subject, reference.subject), reference.version

    def _remove(self, subject: str, version: int) -> None:
        entry = self.entry(subject, version)
        if entry is not None:
            self._take_out(entry, self.context(names.context_of(subject)))

    def _delete(self, subject: str, last: int) -> None:
        for entry in self.subjects.get(subject, ()):
            if entry.version <= last:
                entry.deleted = True

    def _clear(self, scope: str | None) -> None:
        gone = [
            entry
            for subject in self.matching(scope, deleted=True)
            for entry in self.subjects[subject]
            if entry.deleted
        ]
        for entry in gone:
            self._take_out(entry, self.context(names.context_of(entry.subject)))

    def _set(self, kind: str, subject: str | None, value: bytes | None) -> None:
        subject = subject or None
        found = records.read_object(value) if value is not None else None
        if kind == records.MODE:
            mode = found.get("mode") if found is not None else None
            if isinstance(mode, str):
                self._modes[subject] = mode
            else:
                self._modes.pop(subject, None)
        elif found is None:
            self._configs.pop(subject, None)
        else:
            self._configs[subject] = {name: each for name, each in found.items() if name != "subject"}


def newest_first(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.version, reverse=True)

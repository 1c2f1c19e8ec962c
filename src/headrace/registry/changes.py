"""Changes to the registry: each operation looks at the state and returns the records to write, and the reply for when they are read back.

Operations run in the writer, one after the other (`writer.py`), so nothing but a record of another registry changes what they looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.registry import names, records
from headrace.registry import settings_view as view
from headrace.registry.content import Content
from headrace.registry.errors import (
    context_not_empty,
    incompatible,
    invalid_schema,
    not_permitted,
    read_only,
    reference_exists,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from headrace.registry.registry import LATEST, Registry
from headrace.registry.state import Entry, newest_first

Record = tuple[bytes, bytes | None]


@dataclass(slots=True)
class Outcome:
    records: list[Record]
    reply: Any


@dataclass(slots=True)
class Pending:
    """What operations of the same batch have taken: their records are not in the state yet."""

    ids: dict[str, int] = field(default_factory=dict)
    """The highest id given, by context."""
    digests: dict[tuple[str, bytes], int] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Registration:
    subject: str
    content: Content
    version: int = 0
    """The version requested: 0 for the next one, -1 for the next one with its number in the metadata."""
    number: int = -1
    """The id requested; -1 for the next one."""
    normalize: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    id: int
    version: int
    content: Content


async def register(registry: Registry, asked: Registration, pending: Pending) -> Outcome:
    subject, state = asked.subject, registry.state
    context = names.context_of(subject)
    mode = _check_mode(registry, subject, asked.number)
    takes_ids = mode in view.TAKING_IDS
    entries = newest_first(state.versions(subject, deleted=True))
    alive = [entry for entry in entries if not entry.deleted]
    next_version = entries[0].version + 1 if entries else 1
    config = registry.config_of(subject)
    content = asked.content
    if not takes_ids:
        content = _filled(registry, config, asked, alive, next_version)
    fresh = asked.number < 0 and config.get("validateNewSchemas") is not False
    content, parsed = await registry.canonical(
        subject, content, normalize=asked.normalize and not takes_ids, new=fresh
    )
    digest = content.digest()
    number = asked.number
    known = state.id_of(context, digest)
    if known is None:
        known = pending.digests.get((context, digest))
    if known is not None and number in (-1, known):
        if asked.version == 0:
            for entry in alive:
                if entry.id == known:
                    return Outcome([], Registered(known, entry.version, content))
        number = known
    if asked.version == 0:
        same = await registry.equivalent(content, parsed, alive)
        if same is not None and number in (-1, same.id):
            return Outcome([], Registered(same.id, same.version, same.content()))
    if not takes_ids and not asked.force:
        found = await registry.incompatibilities(config, parsed, content, alive)
        if found:
            raise incompatible(subject, found)
    version = asked.version if asked.version > 0 else next_version
    if version != next_version and not takes_ids:
        raise invalid_schema("Version is not one more than previous version")
    if number >= 0:
        _check_id_is_free(registry, context, number, content)
    else:
        number = max(state.highest_id(context), pending.ids.get(context, 0)) + 1
    pending.ids[context] = max(pending.ids.get(context, 0), number)
    pending.digests[context, digest] = number
    wanted: list[Record] = []
    if context not in (names.DEFAULT_CONTEXT, *state.known_contexts, *pending.contexts):
        wanted.append((records.context_key(context), records.context_value(context)))
        pending.contexts.add(context)
    for entry in entries:
        # It comes back under a new version; what refers to the old one keeps it.
        comes_back = entry.deleted and entry.id == number and entry.version < version
        if comes_back and not state.referrers(subject, entry.version, deleted=True):
            wanted.append((state.key(records.SCHEMA, subject, entry.version), None))
    wanted.append(
        (
            state.key(records.SCHEMA, subject, version),
            records.schema_value(subject, version, number, content),
        )
    )
    return Outcome(wanted, Registered(number, version, content))


def _check_mode(registry: Registry, subject: str, number: int) -> str:
    mode = registry.mode_of(subject)
    context = names.prefix_of(names.context_of(subject))
    if mode in view.READ_ONLY:
        raise read_only(subject, context)
    if number >= 0 and mode not in view.TAKING_IDS:
        raise not_permitted(f"Subject {subject} in context {context} is not in import mode")
    if number < 0 and mode != "READWRITE":
        raise not_permitted(f"Subject {subject} in context {context} is not in read-write mode")
    return mode


def _filled(
    registry: Registry, config: Mapping[str, Any], asked: Registration, alive: list[Entry], next_version: int
) -> Content:
    before = alive[0].content() if alive else None
    content = asked.content
    if not content.text.strip():
        if before is None:
            raise invalid_schema("Empty schema")
        content = replace(content, text=before.text, kind=before.kind, references=before.references)
    return registry.filled(config, content, before, next_version)


def _check_id_is_free(registry: Registry, context: str, number: int, content: Content) -> None:
    taken = registry.state.by_id(context, number)
    if taken and taken[0].digest != content.digest():
        raise not_permitted(
            f"Overwrite new schema with id {number} in context {names.prefix_of(context)} is not permitted."
        )


# Deleting.


def _check_writable(registry: Registry, subject: str | None) -> None:
    if registry.mode_of(subject) in view.READ_ONLY:
        context = names.prefix_of(names.context_of(subject)) if subject is not None else ""
        raise read_only(str(subject), context)


def delete_version(registry: Registry, subject: str, version: int, *, permanent: bool) -> Outcome:
    state = registry.state
    entry = state.latest(subject) if version == LATEST else state.entry(subject, version)
    if entry is None:
        if not state.has(subject, deleted=True):
            raise subject_not_found(subject)
        raise version_not_found(version)
    if entry.deleted and not permanent:
        raise version_soft_deleted(subject, version)
    _check_writable(registry, subject)
    if state.referrers(subject, entry.version, deleted=permanent):
        raise reference_exists(subject, entry.version)
    key = state.key(records.SCHEMA, subject, entry.version)
    if not permanent:
        value = records.schema_value(subject, entry.version, entry.id, entry.content(), deleted=True)
        return Outcome([(key, value)], entry.version)
    if not entry.deleted:
        raise version_not_soft_deleted(subject, entry.version)
    last = len(state.versions(subject, deleted=True)) == 1
    return Outcome([(key, None), *(_settings_removed(registry, subject) if last else ())], entry.version)


def delete_subject(registry: Registry, subject: str, *, permanent: bool) -> Outcome:
    state = registry.state
    if not state.has(subject, deleted=True):
        raise subject_not_found(subject)
    if not permanent and not state.has(subject, deleted=False):
        raise subject_soft_deleted(subject)
    _check_writable(registry, subject)
    entries = state.versions(subject, deleted=permanent)
    for entry in entries:
        referrers = state.referrers(subject, entry.version, deleted=permanent)
        if any(each.subject != subject for each in referrers):
            raise reference_exists(subject, entry.version)
        if permanent and not entry.deleted:
            raise subject_not_soft_deleted(subject)
    numbers = [entry.version for entry in entries]
    if not permanent:
        key = records.subject_key(records.DELETE_SUBJECT, subject)
        return Outcome([(key, records.deletion_value(subject, max(numbers, default=0)))], numbers)
    gone: list[Record] = [(state.key(records.SCHEMA, subject, number), None) for number in reversed(numbers)]
    return Outcome([*gone, *_settings_removed(registry, subject)], numbers)


def _settings_removed(registry: Registry, subject: str) -> list[Record]:
    state = registry.state
    found: list[Record] = []
    if state.mode(subject) is not None:
        found.append((state.key(records.MODE, subject), None))
    if state.config(subject) is not None:
        found.append((state.key(records.CONFIG, subject), None))
    return found


def delete_context(registry: Registry, context: str) -> Outcome:
    name = names.parse(context).context
    if registry.state.has(names.prefix_of(name), deleted=True):
        raise context_not_empty(context)
    return Outcome([(records.context_key(name), None)] if name in registry.state.known_contexts else [], None)


# Settings and modes.


def update_config(registry: Registry, subject: str | None, request: Mapping[str, Any]) -> Outcome:
    _check_writable(registry, subject)
    updated = view.updated(registry.state.config(subject), request)
    key = registry.state.key(records.CONFIG, subject)
    return Outcome([(key, records.config_value(subject, updated))], view.as_request(updated))


def delete_config(registry: Registry, subject: str | None) -> Outcome:
    before = registry.own_config(subject)
    if before is None:
        raise subject_not_found(subject or "")
    _check_writable(registry, subject)
    return Outcome([(registry.state.key(records.CONFIG, subject), None)], before)


def set_mode(registry: Registry, subject: str | None, mode: str | None, *, force: bool) -> Outcome:
    state = registry.state
    wanted: list[Record] = []
    if mode == "IMPORT" and registry.mode_of(subject) != "IMPORT" and not force:
        # Ids that come from elsewhere must not meet those that were given here.
        if next(state.matching(subject, deleted=False), None) is not None:
            raise not_permitted("Cannot import since found existing subjects")
        for gone in state.matching(subject, deleted=True):
            for entry in state.versions(gone, deleted=True):
                if state.referrers(gone, entry.version, deleted=True):
                    raise reference_exists(gone, entry.version)
                wanted.append((state.key(records.SCHEMA, gone, entry.version), None))
        wanted.append((records.subject_key(records.CLEAR_SUBJECT, subject), records.clearing_value(subject)))
    value = records.mode_value(subject, mode) if mode is not None else None
    return Outcome([*wanted, (state.key(records.MODE, subject), value)], {"mode": mode})


def delete_mode(registry: Registry, subject: str | None, *, recursive: bool) -> Outcome:
    before = registry.own_mode(subject)
    if before is None and not recursive:
        raise subject_not_found(subject or "")
    state = registry.state
    wanted: list[Record] = [(state.key(records.MODE, subject), None)]
    if recursive and subject is not None and names.is_context(subject):
        wanted += [(state.key(records.MODE, each), None) for each in state.modes_under(subject)]
    return Outcome(wanted, {"mode": before})

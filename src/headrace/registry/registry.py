"""Queries of the registry: subjects, versions, schemas, settings. Nothing here writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any

from headrace.registry import names
from headrace.registry import settings_view as view
from headrace.registry.content import Content, merge_metadata, merge_rule_sets, version_in, with_version
from headrace.registry.errors import (
    InvalidSchema,
    RegistryError,
    invalid_schema,
    invalid_version,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from headrace.registry.formats.base import Parsed
from headrace.registry.formats.compatibility import Earlier, Level, check
from headrace.registry.parsing import Parser
from headrace.registry.state import Entry, State, newest_first

LATEST = -1


def read_version(text: str) -> int:
    """LATEST, or a number from 1 upwards."""
    if text.strip().lower() == "latest":
        return LATEST
    try:
        number = int(text.strip())
    except ValueError:
        raise invalid_version(text) from None
    if number != LATEST and not 1 <= number < 2**31:
        raise invalid_version(text)
    return number


class Registry:
    def __init__(self, state: State, threads: Executor, level: Level = Level.BACKWARD) -> None:
        self.state = state
        self.level = level
        """Where no level is set."""
        self.parser = Parser(state, threads)

    # Settings.

    def config_of(self, subject: str | None) -> dict[str, Any]:
        return view.config_in_scope(self.state, subject, self.level)

    def own_config(self, subject: str | None) -> Mapping[str, Any] | None:
        """What is set for exactly this; the top level always has a level."""
        found = self.state.config(subject)
        if subject is None or names.parse(subject) == (names.GLOBAL_CONTEXT, ""):
            return {"compatibilityLevel": str(self.level), **(found or {})}
        return found

    def own_mode(self, subject: str | None) -> str | None:
        found = self.state.mode(subject)
        if found is None and (subject is None or names.parse(subject) == (names.GLOBAL_CONTEXT, "")):
            return "READWRITE"
        return found

    def mode_of(self, subject: str | None) -> str:
        return view.mode_in_scope(self.state, subject)

    def aliased(self, subject: str) -> str:
        """The subject that is meant, if this one is another name for it."""
        alias = (self.state.config(subject) or {}).get("alias")
        return names.beside(subject, alias) if isinstance(alias, str) and alias else subject

    # Versions.

    def find(self, subject: str, version: int, *, deleted: bool = False) -> Entry | None:
        if version == LATEST:
            return self.state.latest(subject)
        entry = self.state.entry(subject, version)
        return entry if entry is not None and (deleted or not entry.deleted) else None

    def find_anywhere(self, subject: str, version: int, *, deleted: bool = False) -> Entry | None:
        """In the context that is named; without one, in any, the default one first."""
        for place in self._places(subject):
            if (entry := self.find(place, version, deleted=deleted)) is not None:
                return entry
        return None

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Entry:
        found = self.find_anywhere(subject, version, deleted=deleted)
        if found is None:
            if not self.state.has(subject, deleted=deleted):
                raise subject_not_found(subject)
            raise version_not_found(version)
        return found

    def _places(self, subject: str) -> list[str]:
        if names.context_of(subject) != names.DEFAULT_CONTEXT:
            return [subject]
        return [subject, *(names.prefix_of(context) + subject for context in self.state.contexts())]

    def by_id(self, number: int, subject: str = "") -> Entry:
        """A version with this id: of the subject if one is named, in its context, or in any context that has the subject."""
        name = names.parse(subject)
        found = self.state.by_id(name.context, number)
        if name.subject:
            for place in self._places(subject):
                for entry in self.state.by_id(names.context_of(place), number):
                    if entry.subject == place:
                        return entry
            if name.context != names.DEFAULT_CONTEXT:
                found = []
        if not found:
            raise schema_not_found(number)
        return found[0]

    def all_with_id(self, number: int, subject: str, *, deleted: bool) -> list[Entry]:
        """The newest version of each subject that has this id."""
        entry = self.by_id(number, subject)
        newest: dict[str, Entry] = {}
        for each in self.state.by_id(names.context_of(entry.subject), number):
            if (deleted or not each.deleted) and (
                each.subject not in newest or newest[each.subject].version < each.version
            ):
                newest[each.subject] = each
        return list(newest.values())

    def by_guid(self, digest: bytes) -> list[tuple[str, int]]:
        """Contexts and ids."""
        found = []
        for context in dict.fromkeys((names.DEFAULT_CONTEXT, *self.state.contexts())):
            number = self.state.id_of(context, digest)
            if number is not None:
                found.append((context, number))
        return found

    def subjects(self, prefix: str, *, deleted: bool = False, only_deleted: bool = False) -> list[str]:
        """In order. The prefix may be that of one context; `:*:` stands for all of them, which is the default."""
        found = []
        for subject, entries in self.state.subjects.items():
            if not _begins(subject, prefix):
                continue
            gone = all(entry.deleted for entry in entries)
            if gone if only_deleted else (deleted or not gone):
                found.append(subject)
        return sorted(found)

    def schemas(self, prefix: str, *, deleted: bool, latest_only: bool) -> Iterable[Entry]:
        for subject in self.subjects(prefix, deleted=deleted):
            entries = self.state.versions(subject, deleted=deleted)
            yield from entries[-1:] if latest_only else entries

    # Contents.

    async def parse(self, subject: str, content: Content, *, new: bool = False) -> Parsed:
        """RegistryError when it is no schema."""
        try:
            return await self.parser.parse(subject, content, new=new)
        except InvalidSchema as error:
            raise self.invalid(subject, content, error) from None

    @staticmethod
    def invalid(subject: str, content: Content, error: InvalidSchema) -> RegistryError:
        text = content.text if len(content.text) <= 1000 else f"{content.text[:1000]}..."
        return invalid_schema(
            f"Invalid schema {{subject={subject},schemaType={content.kind},schema={text}}}, details: {error}"
        )

    async def canonical(
        self, subject: str, content: Content, *, normalize: bool, new: bool = False
    ) -> tuple[Content, Parsed]:
        """The content with the text it is kept under."""
        if not content.text.strip():
            raise invalid_schema("Empty schema")
        parsed = await self.parse(subject, content, new=new)
        return content.with_text(parsed.normalized() if normalize else parsed.canonical), parsed

    def wants_normalizing(self, subject: str, asked: bool) -> bool:
        return asked or self.config_of(subject).get("normalize") is True

    async def look_up(
        self,
        subject: str,
        content: Content,
        *,
        normalize: bool,
        deleted: bool = False,
        latest_only: bool = False,
    ) -> Entry | None:
        """The version of a subject with this content; also the one it becomes when settings and earlier versions fill it up."""
        canonical, parsed = await self.canonical(subject, content, normalize=normalize)
        found = await self._same(subject, canonical, parsed, deleted, latest_only)
        if found is not None:
            return found
        latest = self.state.latest(subject)
        if latest is None:
            return None
        filled = self.filled(self.config_of(subject), canonical, latest.content(), None)
        return (
            await self._same(subject, filled, parsed, deleted, latest_only) if filled != canonical else None
        )

    async def _same(
        self, subject: str, content: Content, parsed: Parsed, deleted: bool, latest_only: bool
    ) -> Entry | None:
        number = self.state.id_of(names.context_of(subject), content.digest())
        entries = newest_first(self.state.versions(subject, deleted=deleted))
        if latest_only:
            entries = entries[:1]
        for entry in entries:
            if entry.id == number:
                return entry
        return await self.equivalent(content, parsed, entries)

    async def equivalent(self, content: Content, parsed: Parsed, entries: Sequence[Entry]) -> Entry | None:
        """A version that says the same in other words: another registry's, or with references in the place of what they say."""
        inlined = parsed.inlined()
        for entry in entries:
            other = entry.content()
            if other.kind != content.kind or not _same_extras(content, other):
                continue
            try:
                known = await self.parser.entry(entry)
            except InvalidSchema:
                continue  # what another registry let in
            if other.references == content.references:
                if known.canonical == parsed.canonical:
                    return entry
            elif (known.inlined() or known.canonical) == (inlined or parsed.canonical):
                return entry
        return None

    @staticmethod
    def filled(
        config: Mapping[str, Any], content: Content, before: Content | None, version: int | None
    ) -> Content:
        """With metadata and rules of the version before, where it has none of its own, and of the settings."""
        metadata = content.metadata
        rules = content.rule_set
        if before is not None:
            metadata = before.metadata if metadata is None else metadata
            rules = before.rule_set if rules is None else rules
        metadata = merge_metadata(
            merge_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata")
        )
        rules = merge_rule_sets(
            merge_rule_sets(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet")
        )
        if version is not None and version_in(metadata) is not None:
            metadata = with_version(metadata, version)
        return replace(content, metadata=metadata, rule_set=rules)

    # Compatibility.

    async def incompatibilities(
        self, config: Mapping[str, Any], parsed: Parsed, content: Content, newest: Sequence[Entry]
    ) -> list[str]:
        group = config.get("compatibilityGroup")
        if isinstance(group, str):
            wanted = _property(content, group)
            newest = [entry for entry in newest if _property(entry.content(), group) == wanted]
        earlier = [Earlier(entry.version, partial(self.parser.entry, entry)) for entry in newest]
        lenient = config.get("compatibilityPolicy") == "LENIENT"
        level = view.level_of(config)
        try:
            found = await check(level, parsed, earlier, lenient=lenient)
        except InvalidSchema as error:
            return [f"An earlier version cannot be read: {error}"]
        if found:
            found.append(f"{{validateFields: 'false', compatibility: '{level}'}}")
        return found

    async def test(
        self, subject: str, content: Content, entries: Sequence[Entry], *, normalize: bool
    ) -> list[str]:
        """Why a schema could not follow these versions; empty when it could."""
        canonical, parsed = await self.canonical(subject, content, normalize=normalize, new=True)
        return await self.incompatibilities(self.config_of(subject), parsed, canonical, newest_first(entries))


def _same_extras(one: Content, other: Content) -> bool:
    return one.metadata == other.metadata and one.rule_set == other.rule_set


def _property(content: Content, name: str) -> Any:
    return ((content.metadata or {}).get("properties") or {}).get(name)


def _begins(subject: str, prefix: str) -> bool:
    if prefix.startswith(":*:"):
        return names.parse(subject).subject.startswith(prefix[3:])
    return subject.startswith(prefix)

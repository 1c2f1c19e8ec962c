"""Confluent's API: which request asks for what. Questions are answered from the state, changes go to the one that writes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from headrace import __version__
from headrace.registry import changes, names
from headrace.registry import settings_view as view
from headrace.registry.changes import Outcome, Pending
from headrace.registry.content import Content
from headrace.registry.errors import (
    InvalidSchema,
    RegistryError,
    invalid_mode,
    invalid_schema,
    invalid_subject,
    no_compatibility,
    no_mode,
    not_found,
    not_permitted,
    schema_not_found,
    subject_not_found,
    unprocessable,
    version_not_found,
)
from headrace.registry.http_forms import (
    Query,
    read_content,
    read_object,
    read_registration,
    registered_reply,
    schema_reply,
    version_reply,
)
from headrace.registry.instance import Running
from headrace.registry.parsing import KINDS
from headrace.registry.registry import LATEST, read_version
from headrace.registry.security import Right, denied
from headrace.registry.state import Entry
from headrace.registry.writer import Operation

May = Callable[[Right, str | None], bool]
"""Whether the one who asks may do something with a subject, or with everything (None)."""


def everything(right: Right, subject: str | None) -> bool:
    return True


class Text(str):
    """A reply that is sent as it stands: a schema alone."""


@dataclass(frozen=True, slots=True)
class Change:
    """What only the instance that writes can answer."""

    doing: str
    operation: Operation
    scope: str | None = None


class Asked:
    """One request, its path split and decoded."""

    def __init__(
        self,
        method: str,
        path: Sequence[str],
        query: Query,
        body: bytes,
        *,
        full: bool,
        may: May = everything,
    ) -> None:
        self.method = method
        self.path = list(path)
        self.query = query
        self.body = body
        self.full = full
        self.may = may
        self.context = ""
        if len(self.path) >= 3 and self.path[0] == "contexts":
            # /contexts/.staging/subjects/… says in the path what the names of subjects say otherwise.
            context = self.path[1].strip(":")
            self.context = names.prefix_of(context if context.startswith(".") else f".{context}")
            del self.path[:2]

    def require(self, right: Right, subject: str | None) -> None:
        """RegistryError where it is not permitted."""
        if not self.may(right, subject):
            raise denied(right, subject)

    def readable(self, entries: Iterable[Entry]) -> list[Entry]:
        return [each for each in entries if self.may(Right.READ, each.subject)]

    def subject(self, text: str) -> str:
        """A subject's name, in the context of the path unless it names its own."""
        if self.context and not text.startswith(":."):
            text = self.context + text
        return names.normalize(text)


class Routes:
    def __init__(self, running: Running) -> None:
        self._running = running
        self._registry = running.registry
        self._state = running.state

    async def answer(self, asked: Asked) -> Any:
        """A reply, or the Change that makes one. RegistryError for everything else."""
        self._check(asked)
        query = asked.query
        match (asked.method, *asked.path):
            case ("GET" | "POST", "") | ("GET" | "POST",):
                return {}
            case ("GET", "schemas"):
                return self._schemas(asked)
            case ("GET", "schemas", "types"):
                return list(KINDS)
            case ("GET", "schemas", "ids", number):
                return await self._by_id(asked, _number(number))
            case ("GET", "schemas", "ids", number, "schema"):
                entry = self._readable_by_id(asked, _number(number))
                return Text(await self._formatted(entry, query.text("format")) or entry.content().text)
            case ("GET", "schemas", "ids", number, "subjects"):
                return query.page([entry.subject for entry in self._with_id(asked, number)])
            case ("GET", "schemas", "ids", number, "versions"):
                found = self._with_id(asked, number)
                return query.page([{"subject": each.subject, "version": each.version} for each in found])
            case ("GET", "schemas", "guids", guid):
                return await self._by_guid(asked, guid)
            case ("GET", "schemas", "guids", guid, "ids"):
                places = self._registry.by_guid(_digest(guid))
                return [{"context": context, "id": number} for context, number in places]
            case ("GET", "subjects"):
                return self._subjects(asked)
            case ("POST", "subjects", subject):
                return await self._look_up(asked, subject)
            case ("DELETE", "subjects", subject):
                name, permanent = asked.subject(subject), query.flag("permanent")
                return self._change("delete subject", changes.delete_subject, name, permanent=permanent)
            case ("GET", "subjects", subject, "metadata"):
                return await self._with_metadata(asked, subject)
            case ("GET", "subjects", subject, "versions"):
                return self._versions(asked, subject)
            case ("POST", "subjects", subject, "versions"):
                return await self._register(asked, subject)
            case ("GET", "subjects", subject, "versions", version):
                entry = self._version(asked, subject, version)
                return self._qualified(
                    asked,
                    entry,
                    version_reply(
                        entry, full=asked.full, text=await self._formatted(entry, query.text("format"))
                    ),
                )
            case ("DELETE", "subjects", subject, "versions", version):
                return self._change(
                    "delete schema version",
                    changes.delete_version,
                    asked.subject(subject),
                    read_version(version),
                    permanent=query.flag("permanent"),
                )
            case ("GET", "subjects", subject, "versions", version, "schema"):
                entry = self._version(asked, subject, version)
                return Text(await self._formatted(entry, query.text("format")) or entry.content().text)
            case ("GET", "subjects", subject, "versions", version, "referencedby"):
                return self._referenced_by(asked, subject, version)
            case ("POST", "compatibility", "subjects", subject, "versions"):
                return await self._test(asked, subject, None)
            case ("POST", "compatibility", "subjects", subject, "versions", version):
                return await self._test(asked, subject, version)
            case ("GET" | "PUT" | "DELETE", "config"):
                return self._config(asked, asked.context)
            case ("GET" | "PUT" | "DELETE", "config", subject):
                return self._config(asked, asked.subject(subject))
            case ("GET" | "PUT" | "DELETE", "mode"):
                return self._mode(asked, asked.context)
            case ("GET" | "PUT" | "DELETE", "mode", subject):
                return self._mode(asked, asked.subject(subject))
            case ("GET", "contexts"):
                listed = [names.DEFAULT_CONTEXT, *self._state.contexts()]
                return query.page([each for each in listed if each.startswith(query.text("contextPrefix"))])
            case ("DELETE", "contexts", context):
                named = names.prefix_of("." + context.strip(":").removeprefix("."))
                return self._change("delete context", changes.delete_context, named)
            case ("GET", "v1", "metadata", "id"):
                clusters = {
                    "kafka-cluster": self._running.cluster_id,
                    "schema-registry-cluster": self._running.settings.group,
                }
                return {"scope": {"path": [], "clusters": clusters}, "id": ""}
            case ("GET", "v1", "metadata", "version"):
                return {"version": __version__, "commitId": ""}
            case _:
                raise not_found()

    def _check(self, asked: Asked) -> None:
        """What a request does to the subject in its path. Lists, and schemas by id, are cut to what may be read."""
        match (asked.method, *asked.path):
            case ("DELETE", "subjects", subject, *_):
                asked.require(Right.DELETE, asked.subject(subject))
            case ("POST", "subjects", subject, "versions"):
                self._require_by_name(asked, Right.WRITE, subject)
            case (_, "subjects", subject, *_) | (_, "compatibility", "subjects", subject, *_):
                self._require_by_name(asked, Right.READ, subject)
            case ("GET", "config" | "mode", subject):
                asked.require(Right.READ, asked.subject(subject))
            case ("PUT" | "DELETE", "config" | "mode", subject):
                asked.require(Right.CONFIGURE, asked.subject(subject))
            case ("PUT" | "DELETE", "config" | "mode") | ("DELETE", "contexts", _):
                asked.require(Right.CONFIGURE, None)

    def _require_by_name(self, asked: Asked, right: Right, subject: str) -> None:
        """For a subject and what it is another name for: an alias opens nothing."""
        name = asked.subject(subject)
        for each in dict.fromkeys((name, self._registry.aliased(name))):
            asked.require(right, each)

    @staticmethod
    def _referring(asked: Asked, subject: str, content: Content) -> Content:
        """The content, whose references may be read by the one who asks: a schema can be shown with them inside."""
        for reference in content.references:
            asked.require(Right.READ, names.beside(subject, reference.subject))
        return content

    def _change(self, doing: str, decide: Any, *arguments: Any, **options: Any) -> Change:
        async def operation(pending: Pending) -> Outcome:
            outcome: Outcome = decide(self._registry, *arguments, **options)
            return outcome

        return Change(doing, operation)

    # Schemas.

    def _schemas(self, asked: Asked) -> Any:
        query = asked.query
        prefix = asked.context + query.text("subjectPrefix")
        rule = query.text("ruleType")
        found = [
            version_reply(entry, full=asked.full)
            for entry in asked.readable(
                self._registry.schemas(
                    prefix, deleted=query.flag("deleted"), latest_only=query.flag("latestOnly")
                )
            )
        ]
        if rule:
            found = [each for each in found if _has_rule(each.get("ruleSet"), rule)]
        return query.page(found)

    async def _by_id(self, asked: Asked, number: int) -> Any:
        query = asked.query
        entry = self._readable_by_id(asked, number)
        text = await self._formatted(entry, query.text("format"))
        found = schema_reply(entry, full=asked.full, named=bool(query.text("subject")), text=text)
        if query.flag("fetchMaxId"):
            found["maxId"] = self._state.highest_id(names.context_of(entry.subject))
        return self._qualified(asked, entry, found)

    def _readable_by_id(self, asked: Asked, number: int) -> Entry:
        """Whoever may read one subject that has the schema may read the schema."""
        entry = self._registry.by_id(number, asked.subject(asked.query.text("subject")))
        others = self._state.by_id(names.context_of(entry.subject), number)
        found = asked.readable([entry, *others])
        if not found:
            raise denied(Right.READ, entry.subject)
        return found[0]

    async def _by_guid(self, asked: Asked, guid: str) -> Any:
        found = self._registry.by_guid(_digest(guid))
        if not found:
            raise schema_not_found(guid)
        readable = [
            each for context, number in found for each in asked.readable(self._state.by_id(context, number))
        ]
        if not readable:
            raise denied(Right.READ, None)
        entry = readable[0]
        text = await self._formatted(entry, asked.query.text("format"))
        return schema_reply(entry, full=asked.full, named=False, text=text)

    def _with_id(self, asked: Asked, number: str) -> list[Entry]:
        query = asked.query
        subject = asked.subject(query.text("subject"))
        found = self._registry.all_with_id(_number(number), subject, deleted=query.flag("deleted"))
        return asked.readable(found)

    async def _formatted(self, entry: Entry, format: str) -> str | None:
        """The text in another form; None when none is asked for."""
        if not format.strip():
            return None
        try:
            return (await self._registry.parser.entry(entry)).formatted(format)
        except InvalidSchema as error:
            raise invalid_schema(str(error)) from None

    def _qualified(self, asked: Asked, entry: Entry, reply: dict[str, Any]) -> dict[str, Any]:
        """References with their context in their names, where that is asked for."""
        if asked.query.text("referenceFormat") == "qualified" and "references" in reply:
            reply["references"] = [
                {**each, "subject": names.beside(entry.subject, each["subject"])}
                for each in reply["references"]
            ]
        return reply

    # Subjects.

    def _subjects(self, asked: Asked) -> Any:
        query = asked.query
        prefix = (
            asked.context + query.text("subjectPrefix")
            if asked.context
            else query.text("subjectPrefix", ":*:")
        )
        found = self._registry.subjects(
            prefix, deleted=query.flag("deleted"), only_deleted=query.flag("deletedOnly")
        )
        return query.page([each for each in found if asked.may(Right.READ, each)])

    def _versions(self, asked: Asked, subject: str) -> Any:
        query, name = asked.query, self._registry.aliased(asked.subject(subject))
        deleted, only = query.flag("deleted"), query.flag("deletedOnly")
        negative = query.flag("deletedAsNegative")
        if not self._state.has(name, deleted=deleted or only):
            raise subject_not_found(name)
        found = self._state.versions(name, deleted=deleted or only or negative)
        return query.page(
            [
                -entry.version if negative and entry.deleted else entry.version
                for entry in found
                if not only or entry.deleted or negative
            ]
        )

    def _version(self, asked: Asked, subject: str, version: str, *, deleted: bool | None = None) -> Entry:
        wanted = asked.query.flag("deleted") if deleted is None else deleted
        name = self._registry.aliased(asked.subject(subject))
        entry = self._registry.version(name, read_version(version), deleted=wanted)
        asked.require(Right.READ, entry.subject)  # it may be that of another context
        return entry

    def _referenced_by(self, asked: Asked, subject: str, version: str) -> Any:
        entry = self._version(asked, subject, version, deleted=True)
        found = self._state.referrers(entry.subject, entry.version, deleted=asked.query.flag("deleted"))
        return asked.query.page(sorted({each.id for each in found}))

    async def _look_up(self, asked: Asked, subject: str) -> Any:
        query, name = asked.query, self._registry.aliased(asked.subject(subject))
        content = self._referring(asked, name, read_content(read_object(asked.body)))
        normalize = self._registry.wants_normalizing(name, query.flag("normalize"))
        deleted = query.flag("deleted")
        places = [name]
        if names.context_of(name) == names.DEFAULT_CONTEXT:
            places += [names.prefix_of(context) + name for context in self._state.contexts()]
        for number, place in enumerate(places):
            try:
                entry = await self._registry.look_up(place, content, normalize=normalize, deleted=deleted)
            except RegistryError:
                if number:
                    continue  # its references may be in one context only
                raise
            if entry is not None:
                asked.require(Right.READ, entry.subject)
                text = await self._formatted(entry, query.text("format"))
                return version_reply(entry, full=asked.full, text=text)
        if not self._state.has(name, deleted=deleted):
            raise subject_not_found(name)
        raise schema_not_found()

    async def _with_metadata(self, asked: Asked, subject: str) -> Any:
        query, name = asked.query, self._registry.aliased(asked.subject(subject))
        wanted = dict(zip(query.all("key"), query.all("value"), strict=False))
        for entry in reversed(self._state.versions(name, deleted=query.flag("deleted"))):
            properties = (entry.content().metadata or {}).get("properties")
            if properties is not None and wanted.items() <= properties.items():
                text = await self._formatted(entry, query.text("format"))
                return version_reply(entry, full=asked.full, text=text)
        if not self._state.has(name, deleted=query.flag("deleted")):
            raise subject_not_found(name)
        raise schema_not_found()

    async def _register(self, asked: Asked, subject: str) -> Any:
        query = asked.query
        if not names.is_valid(asked.subject(subject)):
            raise invalid_subject(subject)
        name = self._registry.aliased(asked.subject(subject))
        request = read_object(asked.body)
        normalize = self._registry.wants_normalizing(name, query.flag("normalize"))
        wanted = read_registration(name, request, normalize=normalize, force=query.flag("force"))
        self._referring(asked, name, wanted.content)
        entry = await self._already(wanted)
        if entry is not None:
            known = changes.Registered(entry.id, entry.version, entry.content())
            return await self._registered(asked, wanted, known)

        async def operation(pending: Pending) -> Outcome:
            outcome = await changes.register(self._registry, wanted, pending)
            outcome.reply = partial(self._registered, asked, wanted, outcome.reply)
            return outcome

        return Change("register schema", operation, name)

    async def _already(self, wanted: changes.Registration) -> Entry | None:
        """The version that a registration asks for, if it is there: any instance can say so."""
        if wanted.version > 0 or not wanted.content.text.strip():
            return None
        config = self._registry.config_of(wanted.subject)
        if any(name.startswith(("default", "override")) for name in config):
            return None
        if not self._state.versions(wanted.subject):
            return None
        entry = await self._registry.look_up(
            wanted.subject, wanted.content, normalize=wanted.normalize, latest_only=wanted.version == LATEST
        )
        return entry if entry is not None and wanted.number in (-1, entry.id) else None

    async def _registered(
        self, asked: Asked, wanted: changes.Registration, registered: changes.Registered
    ) -> Any:
        reply = registered_reply(registered, wanted.content, full=asked.full)
        format = asked.query.text("format")
        if format and asked.full:
            parsed = await self._registry.parse(wanted.subject, registered.content)
            reply["schema"] = parsed.formatted(format)
        return reply

    # Compatibility, settings, modes.

    async def _test(self, asked: Asked, subject: str, version: str | None) -> Any:
        name, verbose = self._registry.aliased(asked.subject(subject)), asked.query.flag("verbose")
        if version is None:
            entries = self._state.versions(name)
        else:
            number = read_version(version)
            entry = self._registry.find(name, number)
            if entry is None and number != LATEST:
                raise version_not_found(number)
            entries = [entry] if entry is not None else []
        content = self._referring(asked, name, read_content(read_object(asked.body)))
        normalize = self._registry.wants_normalizing(name, asked.query.flag("normalize"))
        try:
            found = await self._registry.test(name, content, entries, normalize=normalize)
        except RegistryError as error:
            if not verbose or error.code != 42201:
                raise
            found = [error.message]
        return {"is_compatible": not found, **({"messages": found} if verbose else {})}

    def _config(self, asked: Asked, subject: str) -> Any:
        name = None if names.is_default_context(subject) else subject
        match asked.method:
            case "GET":
                if asked.query.flag("defaultToGlobal"):
                    return self._registry.config_of(name)
                found = self._registry.own_config(name)
                if found is None:
                    raise no_compatibility(subject)
                return found
            case "PUT":
                request = read_object(asked.body)
                view.updated(None, request)  # what is wrong with it, any instance can say
                if name is not None and not names.is_valid(name, setting=True):
                    raise invalid_subject(subject)
                return self._change("update config", changes.update_config, name, request)
            case _:
                return self._change("delete config", changes.delete_config, name)

    def _mode(self, asked: Asked, subject: str) -> Any:
        name = None if names.is_default_context(subject) else subject
        if asked.method == "GET":
            deep = asked.query.flag("defaultToGlobal")
            found = self._registry.mode_of(name) if deep else self._registry.own_mode(name)
            if found is None:
                raise no_mode(subject)
            return {"mode": found}
        if not self._running.settings.flag("mode.mutability"):
            raise not_permitted("Mode changes are not allowed")
        if asked.method == "DELETE":
            recursive = asked.query.flag("recursive")
            return self._change("delete mode", changes.delete_mode, name, recursive=recursive)
        if name is not None and not names.is_valid(name, setting=True):
            raise invalid_subject(subject)
        mode = read_object(asked.body).get("mode")
        if mode is not None and not isinstance(mode, str):
            raise unprocessable("mode is text")
        mode = mode.upper() if mode is not None else None
        if mode is not None and mode not in view.MODES:
            raise invalid_mode()
        if mode == "FORWARD" and names.parse(name or "").context != names.GLOBAL_CONTEXT:
            raise invalid_mode("Forward mode only supported on global level")
        return self._change("update mode", changes.set_mode, name, mode, force=asked.query.flag("force"))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**31:
        raise not_found()
    return int(text)


def _digest(guid: str) -> bytes:
    try:
        return uuid.UUID(guid).bytes
    except ValueError:
        raise schema_not_found(guid) from None


def _has_rule(rules: Any, kind: str) -> bool:
    listed = (rule for part in (rules or {}).values() if isinstance(part, list) for rule in part)
    return any(rule.get("type") == kind for rule in listed)

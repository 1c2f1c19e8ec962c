"""The content of a registration: the schema's text and type, its references, metadata and rules. Its digest is the schema's identity.

The digest is Confluent's, so a schema has one guid whichever registry took it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.registry.errors import invalid_rule_set, unprocessable
from headrace.registry.formats.base import Reference

AVRO = "AVRO"
VERSION_PROPERTY = "confluent:version"
_RULE_LISTS = ("migrationRules", "domainRules", "encodingRules")
_MIGRATION_MODES, _OTHER_MODES = ("UPGRADE", "DOWNGRADE", "UPDOWN"), ("WRITE", "READ", "WRITEREAD")

Metadata = Mapping[str, Any]
RuleSet = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Content:
    text: str
    kind: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    def with_text(self, text: str) -> Content:
        return replace(self, text=text)

    def digest(self) -> bytes:
        return digest(self.text, self.references, self.metadata, self.rule_set)

    def fields(self) -> dict[str, Any]:
        """As in replies and records, without absent fields."""
        found: dict[str, Any] = {}
        if self.kind != AVRO:
            found["schemaType"] = self.kind
        if self.references:
            found["references"] = [reference._asdict() for reference in self.references]
        if self.metadata is not None:
            found["metadata"] = self.metadata
        if self.rule_set is not None:
            found["ruleSet"] = self.rule_set
        found["schema"] = self.text
        return found


def digest(
    text: str, references: Sequence[Reference], metadata: Metadata | None, rule_set: RuleSet | None
) -> bytes:
    md5 = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for name, subject, version in references:
        md5.update(name.encode() + subject.encode() + version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        md5.update(b"\1")
        for key, values in sorted((metadata.get("tags") or {}).items()):
            md5.update("".join((key, *sorted(values))).encode())
        for key, value in sorted((metadata.get("properties") or {}).items()):
            md5.update(f"{key}{value}".encode())
        md5.update("".join(sorted(metadata.get("sensitive") or ())).encode())
    if rule_set is not None:
        md5.update(b"\1")
        for rules in _RULE_LISTS:
            for rule in rule_set.get(rules) or ():
                _update_by_rule(md5, rule)
        md5.update((rule_set.get("enableAt") or "").encode())
    return md5.digest()


def _update_by_rule(md5: Any, rule: Mapping[str, Any]) -> None:
    for name in ("name", "doc", "kind", "mode", "type"):
        md5.update((rule.get(name) or "").encode())
    md5.update("".join(sorted(rule.get("tags") or ())).encode())
    for key, value in sorted((rule.get("params") or {}).items()):
        md5.update(f"{key}{value}".encode())
    for name in ("expr", "onSuccess", "onFailure"):
        md5.update((rule.get(name) or "").encode())
    if rule.get("disabled"):
        md5.update(b"\1")


def guid_of(digest: bytes) -> str:
    return str(uuid.UUID(bytes=digest))


# Metadata and rules of a schema.


def checked_metadata(value: Any) -> Metadata | None:
    """RegistryError for what is no metadata; None for none."""
    if value is None:
        return None
    tags, properties, sensitive = (
        _part(value, "metadata", name) for name in ("tags", "properties", "sensitive")
    )
    if (
        not _texts(tags, dict, lambda each: _texts(each, list))
        or not _texts(properties, dict, lambda each: isinstance(each, str))
        or not _texts(sensitive, list)
    ):
        raise unprocessable(
            "metadata holds tags (lists of text by name), properties (text by name), sensitive"
        )
    found = {
        **({"tags": tags} if tags else {}),
        **({"properties": properties} if properties else {}),
        **({"sensitive": sensitive} if sensitive else {}),
    }
    return found or None


def checked_rule_set(value: Any) -> RuleSet | None:
    """RegistryError for rules that no client could run; None for none."""
    if value is None:
        return None
    found: dict[str, Any] = {}
    names: set[str] = set()
    for rules in _RULE_LISTS:
        listed = _part(value, "ruleSet", rules)
        if listed is None:
            continue
        if not isinstance(listed, list) or not all(isinstance(rule, dict) for rule in listed):
            raise unprocessable(f"ruleSet.{rules} is a list of rules")
        for rule in listed:
            _check_rule(rule, rules, names)
        if listed:
            found[rules] = listed
    if isinstance(value.get("enableAt"), str):
        found["enableAt"] = value["enableAt"]
    return found or None


def _check_rule(rule: Mapping[str, Any], rules: str, names: set[str]) -> None:
    name = rule.get("name")
    if not isinstance(name, str) or not name:
        raise invalid_rule_set("Missing rule name")
    if name in names:
        raise invalid_rule_set(f"Found rule with duplicate name '{name}'")
    names.add(name)
    if not isinstance(rule.get("type"), str):
        raise invalid_rule_set("Missing rule type")
    migration = rules == "migrationRules"
    allowed = _MIGRATION_MODES if migration else _OTHER_MODES
    if rule.get("mode") not in allowed:
        which = {"migrationRules": "Migration", "domainRules": "Domain", "encodingRules": "Encoding"}[rules]
        raise invalid_rule_set(f"{which} rules can only be {', '.join(allowed)}")


def _part(value: Any, of: str, name: str) -> Any:
    if not isinstance(value, dict):
        raise unprocessable(f"{of} is an object")
    return value.get(name)


def _texts(value: Any, kind: type, each: Any = lambda part: isinstance(part, str)) -> bool:
    if value is None:
        return True
    return isinstance(value, kind) and all(map(each, value.values() if kind is dict else value))  # type: ignore[attr-defined, arg-type]


def merge_metadata(low: Metadata | None, high: Metadata | None) -> Metadata | None:
    """Both; where they differ, `high` wins."""
    if low is None or high is None:
        return low if high is None else high
    tags = {**(low.get("tags") or {})}
    for name, values in (high.get("tags") or {}).items():
        tags[name] = sorted({*tags.get(name, ()), *values})
    properties = {**(low.get("properties") or {}), **(high.get("properties") or {})}
    sensitive = sorted({*(low.get("sensitive") or ()), *(high.get("sensitive") or ())})
    return checked_metadata({"tags": tags, "properties": properties, "sensitive": sensitive})


def merge_rule_sets(low: RuleSet | None, high: RuleSet | None) -> RuleSet | None:
    """Both; a rule of `high` replaces one of the same name."""
    if low is None or high is None:
        return low if high is None else high
    found: dict[str, Any] = {}
    for rules in _RULE_LISTS:
        replaced = {rule["name"] for rule in high.get(rules) or ()}
        listed = [rule for rule in low.get(rules) or () if rule["name"] not in replaced]
        if listed := [*listed, *(high.get(rules) or ())]:
            found[rules] = listed
    if enable := high.get("enableAt") or low.get("enableAt"):
        found["enableAt"] = enable
    return found or None


def with_version(metadata: Metadata | None, version: int) -> Metadata:
    properties = {**((metadata or {}).get("properties") or {}), VERSION_PROPERTY: str(version)}
    return {**(metadata or {}), "properties": properties}


def version_in(metadata: Metadata | None) -> str | None:
    found = ((metadata or {}).get("properties") or {}).get(VERSION_PROPERTY)
    return found if isinstance(found, str) else None


def checked_references(value: Any) -> tuple[Reference, ...]:
    if value is None:
        return ()
    try:
        found = tuple(Reference(each["name"], each["subject"], each["version"]) for each in value)
    except (TypeError, KeyError):
        found = (Reference("", "", 0),)
    if not all(
        isinstance(each.name, str)
        and each.name
        and isinstance(each.subject, str)
        and type(each.version) is int
        for each in found
    ):
        raise unprocessable("references is a list of objects with a name, a subject and a version")
    return found

"""The message definitions inside Apache Kafka's client jar (common/message/*.json), as one table of structs per message.

A definition says of every field in which versions it exists, may be null and is tagged; a struct exists in the versions of the fields that hold it.
"""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass, field
from typing import Any

from bench.provision import need_client_jar

FOLDER = "common/message/"
FOREVER = 32767
Versions = tuple[int, int]

_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*')
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(slots=True)
class FieldInfo:
    name: str
    kind: str
    array: bool
    struct: str | None
    tag: int | None
    default: object
    """What the definition says; None is null where null is allowed by default, else the zero of its kind."""
    versions: Versions
    nullable: Versions | None
    null_by_default: bool = False


@dataclass(slots=True)
class StructInfo:
    name: str
    flexible: int | None
    versions: Versions
    fields: list[FieldInfo] = field(default_factory=list)


@dataclass(slots=True)
class Definition:
    """One message: its structs, inner ones before those that hold them, the message itself last."""

    name: str
    kind: str
    """request, response, or data."""
    api_key: int | None
    listeners: frozenset[str]
    versions: Versions
    structs: list[StructInfo]


def read_definitions(version: str) -> dict[str, Definition]:
    """Every message that this version of Kafka still has, by its name; without versions that are not stable yet."""
    raw = {}
    with zipfile.ZipFile(need_client_jar(version)) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(FOLDER) and name.endswith(".json"):
                text = _COMMENT.sub(lambda match: match[1] or "", archive.read(name).decode())
                message = json.loads(text)
                raw[message["name"]] = message
    unstable = {
        message["apiKey"]: _versions(message["validVersions"])[1]
        for message in raw.values()
        if message.get("latestVersionUnstable")
    }
    return {
        name: _definition(message, unstable.get(message.get("apiKey")))
        for name, message in raw.items()
        if message["validVersions"] != "none"
    }


def _definition(raw: dict[str, Any], unstable: int | None) -> Definition:
    low, high = _versions(raw["validVersions"])
    if high == unstable:
        high -= 1
    # Version 0, which Kafka 4 no longer has, for clients that still ask for it (Burrow 1.2).
    if raw["name"] in _WITH_VERSION_0:
        low = 0
    flexible = None if raw["flexibleVersions"] == "none" else _versions(raw["flexibleVersions"])[0]
    common = {struct["name"]: struct["fields"] for struct in raw.get("commonStructs", [])}
    structs: dict[str, StructInfo] = {}
    _collect(raw["name"], raw["fields"], (low, high), flexible, common, structs)
    for struct, extra in _ONLY_IN_0.items():
        if struct in structs:
            structs[struct].fields.append(extra)
    kind = raw["type"] if raw["type"] in ("request", "response") else "data"
    listeners = frozenset(raw.get("listeners", []))
    return Definition(
        raw["name"], kind, raw.get("apiKey"), listeners, (low, high), _ordered(structs, raw["name"])
    )


def _collect(
    name: str,
    raw_fields: list[dict[str, Any]],
    versions: Versions,
    flexible: int | None,
    common: dict[str, list[dict[str, Any]]],
    structs: dict[str, StructInfo],
) -> None:
    if name in structs:  # a struct that several fields hold
        known = structs[name].versions
        versions = (min(known[0], versions[0]), max(known[1], versions[1]))
    info = structs[name] = StructInfo(
        name, None if flexible is None else max(flexible, versions[0]), versions
    )
    for raw in raw_fields:
        present = _common(_versions(raw["versions"]), versions)
        if present is None:
            continue
        array = raw["type"].startswith("[]")
        kind = raw["type"].removeprefix("[]")
        struct = kind if kind[0].isupper() else None
        nullable = _common(_versions(raw["nullableVersions"]), present) if "nullableVersions" in raw else None
        info.fields.append(
            FieldInfo(
                snake_case(raw["name"]),
                "struct" if struct else kind,
                array,
                struct,
                raw.get("tag"),
                _default(kind, raw.get("default")),
                present,
                nullable,
                raw.get("default") == "null",
            )
        )
        if struct:
            _collect(struct, raw.get("fields") or common[struct], present, flexible, common, structs)


_WITH_VERSION_0 = {"ListOffsetsRequest", "ListOffsetsResponse"}
_ONLY_IN_0 = {
    "ListOffsetsPartition": FieldInfo("max_num_offsets", "int32", False, None, None, 1, (0, 0), None),
    "ListOffsetsPartitionResponse": FieldInfo(
        "old_style_offsets", "int64", True, None, None, None, (0, 0), None
    ),
}


def _versions(text: str) -> Versions:
    low, _, high = text.removesuffix("+").partition("-")
    return int(low), FOREVER if text.endswith("+") else int(high or low)


def _common(one: Versions, other: Versions) -> Versions | None:
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else None


def _default(kind: str, text: object) -> object:
    if text is None or text == "null" or kind[0].isupper():
        return None
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "float64":
        return float(str(text))
    if kind.startswith(("int", "uint")):
        return int(str(text), 0)
    return text if kind == "string" else None


def snake_case(name: str) -> str:
    return _WORDS.sub("_", name).lower()


def _ordered(structs: dict[str, StructInfo], root: str) -> list[StructInfo]:
    done: dict[str, StructInfo] = {}

    def visit(name: str) -> None:
        for held in structs[name].fields:
            if held.struct and held.struct not in done:
                visit(held.struct)
        done[name] = structs[name]

    visit(root)
    return list(done.values())

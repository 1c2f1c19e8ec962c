"""Writes src/headrace/wire/messages/ from the message definitions in kio (a development dependency).

kio has one class per message and version; Headrace wants one class per message, so that a handler builds a
reply once for all versions. Run it again when the versions below change:
`.venv/bin/python tools/generate_messages.py`.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import shutil
import subprocess
import sys
import types
import typing
import uuid
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src/headrace/wire/messages"

# The versions Apache Kafka 4.1 serves, and what brokers say among themselves.
APIS: dict[str, tuple[int, int]] = {
    "produce": (3, 13),
    "fetch": (4, 18),
    "list_offsets": (0, 10),
    "metadata": (0, 13),
    "offset_commit": (2, 9),
    "offset_fetch": (1, 9),
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "sync_group": (0, 5),
    "describe_groups": (0, 6),
    "list_groups": (0, 5),
    "sasl_handshake": (0, 1),
    "api_versions": (0, 4),
    "create_topics": (2, 7),
    "delete_topics": (1, 6),
    "delete_records": (0, 2),
    "init_producer_id": (0, 5),
    "offset_for_leader_epoch": (2, 4),
    "add_partitions_to_txn": (0, 5),
    "add_offsets_to_txn": (0, 4),
    "end_txn": (0, 5),
    "write_txn_markers": (1, 1),
    "txn_offset_commit": (0, 5),
    "describe_acls": (1, 3),
    "create_acls": (1, 3),
    "delete_acls": (1, 3),
    "describe_configs": (1, 4),
    "alter_configs": (0, 2),
    "describe_log_dirs": (1, 4),
    "sasl_authenticate": (0, 2),
    "create_partitions": (0, 3),
    "create_delegation_token": (1, 3),
    "renew_delegation_token": (1, 2),
    "expire_delegation_token": (1, 2),
    "describe_delegation_token": (1, 3),
    "delete_groups": (0, 2),
    "elect_leaders": (0, 2),
    "incremental_alter_configs": (0, 1),
    "alter_partition_reassignments": (0, 1),
    "list_partition_reassignments": (0, 0),
    "offset_delete": (0, 0),
    "describe_client_quotas": (0, 1),
    "alter_client_quotas": (0, 1),
    "describe_user_scram_credentials": (0, 0),
    "alter_user_scram_credentials": (0, 0),
    "alter_partition": (2, 3),
    "update_features": (0, 2),
    "describe_cluster": (0, 2),
    "describe_producers": (0, 0),
    "unregister_broker": (0, 0),
    "describe_transactions": (0, 0),
    "list_transactions": (0, 2),
    "allocate_producer_ids": (0, 0),
    "consumer_group_heartbeat": (0, 1),
    "consumer_group_describe": (0, 1),
    "list_config_resources": (0, 1),
    "describe_topic_partitions": (0, 0),
    # Not APIs: what consumers put into their group's opaque bytes.
    "consumer_protocol_subscription": (0, 3),
    "consumer_protocol_assignment": (0, 3),
}

# Version 0 of what Kafka 4 and kio no longer have, for clients that still ask for it (Burrow 1.2): the fields of version 1, without
# some and with others.
NOT_IN_0 = {("ListOffsetsPartitionResponse", "timestamp"), ("ListOffsetsPartitionResponse", "offset")}
ONLY_IN_0 = {
    "ListOffsetsPartition": ("max_num_offsets", "int32", False, 1),
    "ListOffsetsPartitionResponse": ("old_style_offsets", "int64", True, dataclasses.MISSING),
}

KINDS = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
PYTHON = {
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "uuid.UUID",
    "bool": "bool",
    "float64": "float",
}
ZERO = {"string": "", "bytes": b"", "records": b"", "uuid": None, "bool": False, "float64": 0.0}


@dataclasses.dataclass
class FieldInfo:
    name: str
    kind: str
    array: bool
    struct: str | None
    tag: int | None
    default: object
    versions: list[int]
    nullable: list[int]


@dataclasses.dataclass
class StructInfo:
    name: str
    fields: dict[str, FieldInfo] = dataclasses.field(default_factory=dict)
    flexible: list[int] = dataclasses.field(default_factory=list)
    versions: list[int] = dataclasses.field(default_factory=list)


def unwrap(annotation: object) -> tuple[object, bool, bool]:
    """(inner type, is an array, may be null)"""
    nullable = False
    if isinstance(annotation, types.UnionType):
        arms = [arm for arm in typing.get_args(annotation) if arm is not type(None)]
        nullable = len(arms) < len(typing.get_args(annotation))
        annotation = arms[0]
    if typing.get_origin(annotation) is tuple:
        inner = typing.get_args(annotation)[0]
        if isinstance(inner, types.UnionType):
            inner = next(arm for arm in typing.get_args(inner) if arm is not type(None))
        return inner, True, nullable
    return annotation, False, nullable


def plain(value: object) -> object:
    if value is dataclasses.MISSING:
        return dataclasses.MISSING
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, bool | str | bytes | float) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, uuid.UUID):
        return None
    return dataclasses.MISSING


def collect(cls: type, version: int, structs: dict[str, StructInfo]) -> None:
    info = structs.setdefault(cls.__name__, StructInfo(cls.__name__))
    info.versions.append(version)
    if cls.__flexible__:
        info.flexible.append(version)
    for field in dataclasses.fields(cls):
        inner, array, nullable = unwrap(field.type)
        kafka_type = field.metadata.get("kafka_type")
        name = field.name
        struct = None
        if kafka_type is None:
            kind, struct = "struct", inner.__name__
            collect(inner, version, structs)
        else:
            kind = KINDS.get(kafka_type, kafka_type)
            if kafka_type.startswith(("timedelta", "datetime")):
                name += "_ms"
        if not array and kind not in ("string", "bytes", "records", "struct"):
            nullable = False
        known = info.fields.setdefault(
            name, FieldInfo(name, kind, array, struct, None, plain(field.default), [], [])
        )
        assert (known.kind, known.array, known.struct) == (kind, array, struct), (cls, name)
        if "tag" in field.metadata:
            known.tag = field.metadata["tag"]
        if plain(field.default) is not dataclasses.MISSING:
            known.default = plain(field.default)
        known.versions.append(version)
        if nullable:
            known.nullable.append(version)


def add_version_0(structs: dict[str, StructInfo]) -> None:
    for info in structs.values():
        info.versions.insert(0, 0)
        for field in info.fields.values():
            if 1 in field.versions and (info.name, field.name) not in NOT_IN_0:
                field.versions.insert(0, 0)
        if info.name in ONLY_IN_0:
            name, kind, array, default = ONLY_IN_0[info.name]
            info.fields[name] = FieldInfo(name, kind, array, None, None, default, [0], [])


def ordered(structs: dict[str, StructInfo], root: str) -> list[StructInfo]:
    """Inner structs before the ones that hold them."""
    done: dict[str, StructInfo] = {}

    def visit(name: str) -> None:
        for field in structs[name].fields.values():
            if field.struct and field.struct not in done:
                visit(field.struct)
        done[name] = structs[name]

    visit(root)
    return list(done.values())


def merge_order(cls_by_version: dict[int, type], structs: dict[str, StructInfo]) -> None:
    """Fields in the order of the wire: each version's order must be a subsequence of the merged one."""
    sequences: dict[str, list[list[str]]] = {}

    def note(cls: type) -> None:
        row = []
        for field in dataclasses.fields(cls):
            kafka_type = field.metadata.get("kafka_type")
            renamed = kafka_type is not None and kafka_type.startswith(("timedelta", "datetime"))
            row.append(field.name + "_ms" if renamed else field.name)
            if kafka_type is None:
                note(unwrap(field.type)[0])
        sequences.setdefault(cls.__name__, []).append(row)

    for cls in cls_by_version.values():
        note(cls)
    for name, rows in sequences.items():
        pending = [list(row) for row in rows]
        merged: list[str] = []
        while any(pending):
            for row in pending:
                if row and not any(row[0] in other[1:] for other in pending):
                    head = row[0]
                    break
            else:
                raise AssertionError(f"no common order in {name}")
            merged.append(head)
            for row in pending:
                if row and row[0] == head:
                    row.pop(0)
        fields = structs[name].fields
        structs[name].fields = {key: fields[key] for key in merged}


def span(values: list[int], limits: list[int]) -> str:
    low, high = min(values), max(values)
    return f"({low}, {'ALWAYS' if high == max(limits) else high})"


def python_type(field: FieldInfo) -> str:
    inner = field.struct or PYTHON.get(field.kind, "int")
    text = f"list[{inner}]" if field.array else inner
    return f"{text} | None" if field.nullable else text


def default_of(field: FieldInfo) -> object:
    if field.default is None and field.kind == "int64":
        return -1  # kio's word for "no time"
    if field.default is not dataclasses.MISSING:
        return field.default
    return ZERO.get(field.kind, 0)


def emit_struct(info: StructInfo, base: str, extra: list[str]) -> list[str]:
    lines = [f"class {info.name}({base}):"]
    slots = ", ".join(f'"{name}"' for name in info.fields)
    lines.append(f"    __slots__ = ({slots}{',' if len(info.fields) == 1 else ''})")
    lines += extra
    if info.flexible:
        lines.append(f"    FLEXIBLE = {min(info.flexible)}")
    lines.append("    FIELDS = (")
    for field in info.fields.values():
        parts = [f'"{field.name}"', f'"{field.kind}"', span(field.versions, info.versions)]
        if field.array:
            parts.append("array=True")
        if field.nullable:
            parts.append(f"nullable={span(field.nullable, info.versions)}")
        if field.tag is not None:
            parts.append(f"tag={field.tag}")
        if field.kind != "struct" and not field.array:
            default = default_of(field)
            if default is None and field.kind == "uuid":
                parts.append("default=ZERO_UUID")
            elif default is not None:
                parts.append(f"default={default!r}")
        if field.struct:
            parts.append(f"struct={field.struct}")
        lines.append(f"        Field({', '.join(parts)}),")
    lines.append("    )")
    if not info.fields:
        return lines
    lines.append("")
    lines.append("    def __init__(")
    lines.append("        self,")
    body = []
    for field in info.fields.values():
        kind = python_type(field)
        fresh = "[]" if field.array else f"{field.struct}()"
        if field.kind == "uuid" and not field.array:
            lines.append(f"        {field.name}: {kind} = ZERO_UUID,")
            body.append(f"        self.{field.name} = {field.name}")
        elif (field.array or field.struct) and not field.nullable:
            lines.append(f"        {field.name}: {kind} | None = None,")
            body.append(f"        self.{field.name} = {fresh} if {field.name} is None else {field.name}")
        elif field.array or field.struct:
            lines.append(f"        {field.name}: {kind} = None,")
            body.append(f"        self.{field.name} = {field.name}")
        else:
            lines.append(f"        {field.name}: {kind} = {default_of(field)!r},")
            body.append(f"        self.{field.name} = {field.name}")
    lines.append("    ) -> None:")
    return lines + body


def generate(api: str, versions: tuple[int, int]) -> str:
    chunks: list[str] = []
    title = "".join(part.capitalize() for part in api.split("_"))
    key = None
    emitted: set[str] = set()
    bases: set[str] = set()
    for entity in ("request", "response", "data"):
        by_version: dict[int, type] = {}
        structs: dict[str, StructInfo] = {}
        root = f"{title}{entity.capitalize()}" if entity != "data" else title
        for version in range(versions[0], versions[1] + 1):
            try:
                module = importlib.import_module(f"kio.schema.{api}.v{version}.{entity}")
            except ModuleNotFoundError:
                continue
            by_version[version] = getattr(module, root)
            collect(by_version[version], version, structs)
        if not by_version:
            continue
        merge_order(by_version, structs)
        if api == "list_offsets":
            add_version_0(structs)
        root_class = next(iter(by_version.values()))
        for info in ordered(structs, root):
            base, extra = "Message", []
            if info.name == root and entity != "data":
                key = int(root_class.__api_key__)
                base = f'Request["{title}Response"]' if entity == "request" else "Response"
                extra.append(f"    API_KEY = {key}")
                if entity == "request":
                    extra.append(f"    VERSIONS = {versions}")
            bases.add(base.partition("[")[0])
            # A request and a response may each have a struct of the same name with other fields.
            if info.name in emitted:
                old, info.name = info.name, f"{entity.capitalize()}{info.name}"
                for holder in structs.values():
                    for field in holder.fields.values():
                        if field.struct == old:
                            field.struct = info.name
            emitted.add(info.name)
            lines = emit_struct(info, base, extra)
            if base.startswith("Request"):
                lines += [
                    "",
                    "    @classmethod",
                    f"    def reply_type(cls) -> type[{title}Response]:",
                    f"        return {title}Response",
                ]
            chunks.append("\n".join(lines))
    text = "\n\n\n".join(chunks)
    names = sorted(
        {"Field"}
        | bases
        | ({"ALWAYS"} if "ALWAYS" in text else set())
        | ({"ZERO_UUID"} if "ZERO_UUID" in text else set())
    )
    what = f"{title} (API key {key})" if key is not None else title
    head = f'"""{what}. Made by tools/generate_messages.py: change that."""\n\n'
    head += "from __future__ import annotations\n\n"
    if "uuid.UUID" in text:
        head += "import uuid\n\n"
    return f"{head}from headrace.wire.schema import {', '.join(names)}\n\n\n{text}\n"


def main() -> None:
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    (TARGET / "__init__.py").write_text(
        '"""One module per API, generated; see `headrace.wire.schema` for how to read them."""\n'
    )
    for api, versions in APIS.items():
        (TARGET / f"{api}.py").write_text(generate(api, versions))
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "format", "-q", str(TARGET)], check=True)
    subprocess.run([*ruff, "check", "-q", "--fix", str(TARGET)], check=True)
    subprocess.run([*ruff, "format", "-q", str(TARGET)], check=True)


if __name__ == "__main__":
    main()

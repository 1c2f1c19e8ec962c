"""Writes src/headrace/wire/messages/ from the message definitions inside Apache Kafka's client jar.

One class per message, for all versions, so that a handler builds a reply once. For a new version of Kafka:
`.venv/bin/python -m tools.generate_messages 4.5.0`; without a version it is the one written last. What has changed is then `git diff`.
Callers pass fields by position, so constructors keep the order they have: new fields come last.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tools.message_definitions import (
    Definition,
    FieldInfo,
    StructInfo,
    Versions,
    read_definitions,
    snake_case,
)

TARGET = Path(__file__).parent.parent / "src/headrace/wire/messages"
MADE_HERE = "Made by tools/generate_messages.py"
Orders = dict[str, list[str]]
"""The parameters of constructors, by class."""

# Served by brokers, but only of use to a Raft quorum, which Headrace does not have.
NOT_HERE = {"AddRaftVoter", "RemoveRaftVoter", "UnregisterController"}
# Not for clients: what brokers say to the controller.
AMONG_BROKERS = {"AlterPartition", "AllocateProducerIds"}
# Not APIs: what consumers put into their group's opaque bytes.
DATA = {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}

PYTHON = {
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "uuid.UUID",
    "bool": "bool",
    "float64": "float",
}
ZERO: dict[str, object] = {
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": None,
    "bool": False,
    "float64": 0.0,
}


def span(versions: Versions, limits: Versions) -> str:
    low, high = versions
    return f"({low}, {'ALWAYS' if high == limits[1] else high})"


def python_type(field: FieldInfo, names: dict[str, str]) -> str:
    inner = names[field.struct] if field.struct else PYTHON.get(field.kind, "int")
    text = f"list[{inner}]" if field.array else inner
    return f"{text} | None" if field.nullable else text


def default_of(field: FieldInfo) -> object:
    if field.default is not None:
        return field.default
    return None if field.null_by_default else ZERO.get(field.kind, 0)


def orders_in(module: Path) -> Orders:
    """The constructors that the last run wrote into this module."""
    if not module.exists():
        return {}
    return {
        each.name: [argument.arg for argument in method.args.args[1:]]
        for each in ast.parse(module.read_text()).body
        if isinstance(each, ast.ClassDef)
        for method in each.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
    }


def emit_struct(
    info: StructInfo, base: str, extra: list[str], names: dict[str, str], orders: Orders
) -> list[str]:
    lines = [f"class {names[info.name]}({base}):"]
    slots = ", ".join(f'"{field.name}"' for field in info.fields)
    lines.append(f"    __slots__ = ({slots}{',' if len(info.fields) == 1 else ''})")
    lines += extra
    if info.flexible is not None:
        lines.append(f"    FLEXIBLE = {info.flexible}")
    lines.append("    FIELDS = (")
    for field in info.fields:
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
            parts.append(f"struct={names[field.struct]}")
        lines.append(f"        Field({', '.join(parts)}),")
    lines.append("    )")
    if not info.fields:
        return lines
    lines.append("")
    lines.append("    def __init__(")
    lines.append("        self,")
    body = []
    order = orders.get(names[info.name], [])
    for field in sorted(
        info.fields, key=lambda field: order.index(field.name) if field.name in order else len(order)
    ):
        kind = python_type(field, names)
        if field.kind == "uuid" and not field.array:
            lines.append(f"        {field.name}: {kind} = ZERO_UUID,")
            body.append(f"        self.{field.name} = {field.name}")
        elif (field.array or field.struct) and not field.nullable:
            fresh = "[]" if field.array else f"{kind}()"
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


def generate(title: str, messages: list[Definition], orders: Orders) -> str:
    chunks: list[str] = []
    emitted: set[str] = set()
    bases: set[str] = set()
    for message in messages:
        names: dict[str, str] = {}
        for info in message.structs:
            # A request and a response may each have a struct of the same name with other fields.
            taken = info.name in emitted
            names[info.name] = f"{message.kind.capitalize()}{info.name}" if taken else info.name
            emitted.add(names[info.name])
            base, extra = "Message", []
            if info.name == message.name and message.kind != "data":
                base = f'Request["{title}Response"]' if message.kind == "request" else "Response"
                extra.append(f"    API_KEY = {message.api_key}")
                if message.kind == "request":
                    extra.append(f"    VERSIONS = {message.versions}")
            bases.add(base.partition("[")[0])
            lines = emit_struct(info, base, extra, names, orders)
            if base.startswith("Request"):
                lines += [
                    "",
                    "    @classmethod",
                    f"    def reply_type(cls) -> type[{title}Response]:",
                    f"        return {title}Response",
                ]
            chunks.append("\n".join(lines))
    text = "\n\n\n".join(chunks)
    used = {"Field"} | bases | {name for name in ("ALWAYS", "ZERO_UUID") if name in text}
    key = messages[0].api_key
    what = f"{title} (API key {key})" if key is not None else title
    head = f'"""{what}. {MADE_HERE}: change that."""\n\n'
    head += "from __future__ import annotations\n\n"
    if "uuid.UUID" in text:
        head += "import uuid\n\n"
    return f"{head}from headrace.wire.schema import {', '.join(sorted(used))}\n\n\n{text}\n"


def chosen(definitions: dict[str, Definition]) -> dict[str, list[Definition]]:
    """What becomes a module: request and response of an API, or one message that is neither."""
    titles = {
        name.removesuffix("Request")
        for name, message in definitions.items()
        if message.kind == "request" and "broker" in message.listeners
    }
    found = {
        title: [definitions[f"{title}Request"], definitions[f"{title}Response"]]
        for title in sorted((titles - NOT_HERE) | AMONG_BROKERS)
    }
    return found | {name: [definitions[name]] for name in sorted(DATA)}


def last_version() -> str:
    match = re.search(r'KAFKA = "([^"]+)"', (TARGET / "__init__.py").read_text())
    assert match is not None
    return match[1]


def main() -> None:
    version = sys.argv[1] if len(sys.argv) > 1 else last_version()
    modules = {
        snake_case(title): generate(title, messages, orders_in(TARGET / f"{snake_case(title)}.py"))
        for title, messages in chosen(read_definitions(version)).items()
    }
    for module in TARGET.glob("*.py"):
        if MADE_HERE in module.read_text():  # the others are Headrace's own messages
            module.unlink()
    (TARGET / "__init__.py").write_text(
        '"""One module per API, generated; see `headrace.wire.schema` for how to read them."""\n\n'
        f'KAFKA = "{version}"\n"""The version of Apache Kafka whose definitions these are."""\n'
    )
    for name, text in modules.items():
        (TARGET / f"{name}.py").write_text(text)
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "format", "-q", str(TARGET)], check=True)
    subprocess.run([*ruff, "check", "-q", "--fix", str(TARGET)], check=True)
    subprocess.run([*ruff, "format", "-q", str(TARGET)], check=True)


if __name__ == "__main__":
    main()

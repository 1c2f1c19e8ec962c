"""Imports point down only, as docs/architecture.md draws them; outside the broker's rooms only the wire is used."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "headrace"

ROOMS = [
    "wire",
    "config",
    "cluster",
    "log",
    "peer",
    "replica",
    "coordinator",
    "groups",
    "transactions",
    "api",
    "broker",
]
"""From the ground up: a room may use those before it."""

OUTSIDE = {"client", "connectors", "pipelines", "services", "spark"}


def imports(file):
    """Modules a file imports when it runs; what is only for the type checker does not count."""
    tree = ast.parse(file.read_text())
    only_types = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            only_types.update(id(inner) for statement in node.body for inner in ast.walk(statement))
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room_of(module):
    parts = module.split(".")
    return parts[1] if parts[0] == "headrace" and len(parts) > 1 else None


def test_the_brokers_rooms_import_downwards_only():
    wrong = []
    for number, room in enumerate(ROOMS):
        allowed = set(ROOMS[: number + 1]) | {"clock", "parent"}
        for file in (SOURCE / room).rglob("*.py"):
            wrong += [
                f"{file.relative_to(SOURCE)} imports {module}"
                for module in imports(file)
                if room_of(module) is not None and room_of(module) not in allowed
            ]
    assert wrong == []


def test_what_speaks_over_the_wire_imports_no_insides():
    wrong = []
    for room in OUTSIDE:
        for file in (SOURCE / room).rglob("*.py"):
            wrong += [
                f"{file.relative_to(SOURCE)} imports {module}"
                for module in imports(file)
                if room_of(module) in set(ROOMS) - {"wire"}
            ]
    assert wrong == []

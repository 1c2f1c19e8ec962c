"""Imports point down only, as docs/architecture.md draws them: every file, imports for types and inside functions included."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headrace"

GROUND = ["__init__", "clock", "compiled", "nearest", "parent", "replacing", "unread"]

BROKER = [
    "server/config",
    "server/security",
    "server/cluster",
    "server/quotas",
    "server/telemetry",
    "server/log",
    "server/replica",
    "server/coordinator",
    "server/groups",
    "server/share",
    "server/transactions",
    "server/mirror",
    "server/net",
    "server/api",
    "server/metrics",
    "server",
]
"""From the ground up: each may use those before it."""

CLI = ["cli/failure", "cli/parsing", "cli/view", "cli/cluster"]
"""What commands and Kafka's tools stand on, from the ground up; neither of those two knows the other."""

OUTSIDE = {
    "wire": [],
    "link": ["wire"],
    "client": ["wire", "link"],
    "backlog": ["wire", "link", "client"],
    "spark": ["wire", "link", "client"],
    "streaming": ["wire", "link", "client"],
    "pipelines": ["wire", "link", "client", "spark", "streaming"],
    "connectors": ["wire", "link", "client", "spark", "streaming"],
    "services": ["wire", "link", "client"],
    "watch": ["wire", "link", "client"],
    "registry": ["wire", "link"],
    "testing": ["wire", "link", "registry", *BROKER],
    "cli": [
        "wire",
        "link",
        "client",
        "spark",
        "streaming",
        "pipelines",
        "connectors",
        "services",
        "watch",
        "backlog",
        "registry",
        *BROKER,
    ],
}
"""What each of the other packages may use. They reach a broker over the wire; only `testing` and `cli` start one."""


def allowed() -> dict[str, list[str]]:
    may = {part: GROUND + OUTSIDE[part] + [part] for part in OUTSIDE}
    for number, part in enumerate(BROKER):
        may[part] = [*GROUND, "wire", "link", *BROKER[: number + 1]]
    below_commands = [*GROUND, *OUTSIDE["cli"]]
    for number, part in enumerate(CLI):
        may[part] = [*below_commands, *CLI[: number + 1]]
    for part in ("cli/commands", "cli/kafka"):
        may[part] = [*below_commands, *CLI, "cli/options", "cli/frame", part]
    may["cli/options"] = may["cli/frame"] = [*below_commands, *CLI, "cli/completion", "cli/options"]
    may["cli/completion"] = [*below_commands, *CLI, "cli/completion"]
    may["cli"] += [part for part in may if part.startswith("cli/")]
    return may | dict.fromkeys(GROUND, GROUND)


def imported(file: Path) -> set[str]:
    """The paths of what a file imports from this package: `server/log/files`, or `server/log/files/Files` for a name in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {
        name.removeprefix("headrace.").replace(".", "/") for name in found if name.startswith("headrace.")
    }


def part_of(path: str, parts: dict[str, list[str]]) -> str:
    """The package a module belongs to, the innermost of those in the rule."""
    while path and path not in parts:
        path = path.rpartition("/")[0]
    return path or "__init__"


def test_every_file_imports_only_what_lies_below_it() -> None:
    may = allowed()
    wrong = []
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).with_suffix("").as_posix()
        below = may[part_of(path, may)]
        wrong += [
            f"{path} imports {module}"
            for module in sorted(imported(file))
            if part_of(module, may) not in below
        ]
    assert wrong == []


def test_every_package_stands_in_the_rule() -> None:
    tops = {
        entry.stem for entry in SOURCE.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()
    }
    assert tops == {part.partition("/")[0] for part in allowed()}
    inner = {
        f"server/{entry.name}" for entry in (SOURCE / "server").iterdir() if (entry / "__init__.py").exists()
    }
    assert inner == {part for part in BROKER if "/" in part}
    packages = {
        f"cli/{entry.name}" for entry in (SOURCE / "cli").iterdir() if (entry / "__init__.py").exists()
    }
    assert packages <= allowed().keys()


@pytest.mark.parametrize("package", ["server", *OUTSIDE])
def test_the_modules_of_a_package_do_not_import_each_other_in_a_circle(package: str) -> None:
    files = {
        file.relative_to(SOURCE).with_suffix("").as_posix(): file for file in (SOURCE / package).rglob("*.py")
    }
    graph = {
        path: {name if name in files else name.rpartition("/")[0] for name in imported(file)} & files.keys()
        for path, file in files.items()
    }
    circle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle == []

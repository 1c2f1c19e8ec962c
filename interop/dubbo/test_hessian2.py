"""Java's Hessian 2 reads what Python writes, and still writes what tests/services holds as golden."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.services.hessian2 import encode

GOLDEN_TEST = Path(__file__).parents[2] / "tests" / "services" / "test_hessian2_golden.py"


def golden_test() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hessian2_golden", GOLDEN_TEST)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_java_reads_every_case_as_python_wrote_it(java: Any, tmp_path: Path) -> None:
    golden = golden_test()
    lines = [f"{name}\t{encode(value).hex()}\n" for name, value in golden.CASES.items()]
    (tmp_path / "python.txt").write_text("".join(lines))
    checked = java.run("Golden", "check", str(tmp_path / "python.txt"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # hessian-lite has no way to make a UUID, so that a Java service cannot take one from anybody.
    assert checked.stdout.splitlines() == [
        "uuid: Java cannot read its own",
        f"{len(golden.CASES) - 1} values read",
    ]


def test_the_golden_bytes_are_what_java_writes_today(java: Any, tmp_path: Path) -> None:
    written = java.run("Golden", "write", str(tmp_path / "golden.json"))
    assert written.returncode == 0, written.stderr
    assert (tmp_path / "golden.json").read_text() == golden_test().GOLDEN.read_text()

"""What is compiled, and how one of both builds is chosen. What the compiled build does is what `make test-compiled` tries: this whole suite."""

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import headrace
from headrace.compiled import build

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
PATTERNS = BUILD["hooks"]["custom"]["modules"]
COMPILED = sorted({path for pattern in PATTERNS for path in SOURCE.glob(pattern)})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_name_on_the_list_is_a_module(pattern):
    assert list(SOURCE.glob(pattern))


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_function_gives_one_name_to_errors_of_two_types(path):
    """mypyc gives the name the first type, and a TypeError takes the place of the second error."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            handlers = [each for each in ast.walk(function) if isinstance(each, ast.ExceptHandler)]
            types = {(each.name, ast.unparse(each.type)) for each in handlers if each.name}
            assert len({name for name, _ in types}) == len(types), function.name


def test_nothing_is_compiled_unless_the_build_is_asked_to():
    assert BUILD["hooks"]["custom"]["enable-by-default"] is False


def version(place, **environment):
    command = [
        sys.executable,
        "-c",
        "import sys; from headrace.cli import main; sys.argv[1:] = ['--version']; main()",
    ]
    return subprocess.run(
        command, env={"PYTHONPATH": str(place), **environment}, capture_output=True, text=True, check=True
    ).stdout


def test_the_version_says_which_build_runs():
    assert version(Path(headrace.__file__).parent.parent) == f"headrace {headrace.__version__} ({build()})\n"


def test_the_sources_are_chosen_where_compiled_modules_lie_beside_them(tmp_path):
    import _struct

    compiled = Path(getattr(_struct, "__file__", None) or pytest.skip("no extension module to take for one"))
    shutil.copytree(SOURCE / "headrace", tmp_path / "headrace", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(compiled, tmp_path / "headrace" / f"unread{''.join(compiled.suffixes)}")
    assert version(tmp_path).endswith("(compiled)\n")
    assert version(tmp_path, HEADRACE_PURE="0").endswith("(compiled)\n")
    assert version(tmp_path, HEADRACE_PURE="1").endswith("(pure Python)\n")

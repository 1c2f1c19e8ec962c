"""Kafka's tools under their known names: in the checkout, and from an installed wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from headrace.cli.kafka import TOOLS

ROOT = Path(__file__).parents[3]


def run(*command: object, bootstrap: str) -> str:
    environment = {**os.environ, "HEADRACE_BOOTSTRAP": bootstrap}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=90, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_tool_has_its_script_in_the_checkout_and_in_the_wheel():
    scripts = {path.name for path in (ROOT / "bin").glob("kafka-*.sh")}
    assert scripts == {f"kafka-{tool}.sh" for tool in TOOLS}
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    scripts.add("connect-mirror-maker.sh")  # a command of another kind: `headrace mirror from-mirror-maker`
    assert packaged["shared-scripts"] == {f"bin/{script}": script for script in scripts}
    assert all(os.access(ROOT / "bin" / script, os.X_OK) for script in scripts)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_script_is_its_tool(tool, bootstrap):
    assert f"usage: kafka-{tool}.sh" in run(ROOT / "bin" / f"kafka-{tool}.sh", "--help", bootstrap=bootstrap)


def test_a_link_to_a_script_works(tmp_path, topic, bootstrap):
    (tmp_path / "kafka-topics.sh").symlink_to(ROOT / "bin" / "kafka-topics.sh")
    assert topic in run(tmp_path / "kafka-topics.sh", "--list", bootstrap=bootstrap).splitlines()


def test_the_wheel_brings_the_command_and_kafkas_names(tmp_path, topic, bootstrap):
    uv = Path(sys.executable).parent / "uv"
    subprocess.run(
        [uv, "build", "-q", "--wheel", "--no-build-isolation", "-o", tmp_path, ROOT], check=True, timeout=90
    )
    (wheel,) = tmp_path.glob("*.whl")
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=90)
    python = environment / "bin" / "python"
    subprocess.run(
        [uv, "pip", "install", "-q", "--no-deps", "--python", python, wheel], check=True, timeout=90
    )
    # What the wheel depends on is taken from here instead of being downloaded again; its own code comes first.
    site = next((environment / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    where = run(python, "-c", "import headrace; print(headrace.__file__)", bootstrap=bootstrap)
    assert where.startswith(str(environment))
    assert topic in run(environment / "bin" / "headrace", "topics", "list", bootstrap=bootstrap)
    assert topic in run(environment / "bin" / "kafka-topics.sh", "--list", bootstrap=bootstrap)

"""Fifteen storms on every `make test`, the same run from the same seed, and that mistakes are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutations import BY_NAME, MUTATION, MUTATIONS, Mutation

ROOT = Path(__file__).parent.parent.parent
SEEDS = 15


def simulate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(1200)
def test_a_cluster_keeps_its_promises_through_brief_storms() -> None:
    done = simulate("--brief", "--seeds", str(SEEDS), "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^seed \d+: passed", done.stdout, re.MULTILINE)) == SEEDS


@pytest.mark.timeout(600)
def test_the_same_seed_is_the_same_run_wherever_objects_lie_in_memory() -> None:
    runs = [
        simulate("--brief", "--replay", "3", PYTHONMALLOC=allocator).stdout
        for allocator in ("malloc", "pymalloc")
    ]
    assert "trace" in runs[0].splitlines()[-1]
    traces = [re.sub(r"[\d.]+ s of CPU", "", run) for run in runs]
    assert traces[0] == traces[1]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_each_mutation_still_fits_its_source(mutation: Mutation) -> None:
    source = ROOT / "src/headrace/server" / (mutation.module.replace(".", "/") + ".py")
    compile(mutation.apply(source.read_text()), str(source), "exec")


@pytest.mark.timeout(600)
def test_a_mistake_is_found_and_the_command_that_replays_it_is_printed() -> None:
    name = "acknowledge before the replicas"
    assert name in BY_NAME
    done = simulate("--seeds", "4", "--cores", "2", "--first-failure", "--no-shrink", **{MUTATION: name})
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r'Replay it: make simulate ARGS="--replay \d+"', done.stdout)

"""The Spark that `check` starts for a moment: with the user's options, and gone without a trace."""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

FLOW = """
    from headrace import pipelines as hp

    events = hp.topic("events", "id BIGINT")

    @hp.topic("copy")
    def copied():
        return events.stream()
"""

CHECK_TWICE = """
from pathlib import Path

from headrace.cli.commands.pipeline_run import check_project

for _ in range(2):
    problems, _ = check_project(
        Path("."), bootstrap=None, command_config=None, offline=True, master="local[1]", conf=[]
    )
    print(problems)
"""


@pytest.fixture
def scratch():
    """A directory with a short name, for Spark puts sockets into it."""
    with TemporaryDirectory(prefix="check-") as directory:
        yield Path(directory)


@pytest.mark.timeout(600)
def test_check_keeps_the_projects_java_options_and_leaves_nothing_behind(write_project, tmp_path, scratch):
    root = write_project({"flow.py": FLOW})
    log = tmp_path / "gc.log"
    with (root / "spark-pipeline.yml").open("a") as spec:
        options = f"-Djava.io.tmpdir={scratch} -Xlog:gc:file={log}"
        spec.write(f"configuration:\n  spark.driver.extraJavaOptions: {options}\n")
    ran = subprocess.run(
        [sys.executable, "-c", CHECK_TWICE],
        cwd=root,
        env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:+UseParallelGC", "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.stdout.splitlines() == ["[]", "[]"], ran.stderr
    assert "Using Parallel" in log.read_text()
    deadline = time.monotonic() + 60  # Spark's process tidies up after ours has ended
    while left := list(scratch.iterdir()):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)

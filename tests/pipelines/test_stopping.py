"""Ctrl-C ends a run also when Spark does not react."""

import os
import signal
from pathlib import Path

import pytest

FLOW = """
    from headrace import pipelines as hp

    events = hp.topic("events", "id BIGINT", partitions=1)

    @hp.topic("events.copy")
    def copied():
        return events.stream()
"""


def jvm_of(pid):
    """The Java process that another one has started."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except OSError:
            continue
        name, _, rest = text.rpartition(")")
        if name.endswith("(java") and int(rest.split()[1]) == pid:
            return int(status.parent.name)
    return None


@pytest.mark.timeout(900)
def test_a_spark_that_hangs_does_not_keep_a_run_from_ending(write_project, commands, own_cluster):
    root = write_project({"flow.py": FLOW}, "hanging")
    run = commands.start(root, "run")
    commands.wait(lambda: "events.copy" in own_cluster.topics(), run)
    jvm = jvm_of(run.pid)
    os.kill(jvm, signal.SIGSTOP)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 130, errors
    assert "Traceback" not in errors
    assert "stopped" in commands.ask(root, "status")
    assert not Path(f"/proc/{jvm}").exists()

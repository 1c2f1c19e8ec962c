"""The files that runs of an earlier version left are read, held and written on."""

import json

import pytest

from headrace.connectors import ConnectorError
from headrace.connectors.state import State, all_states
from headrace.pipelines.state import RunState, versions

CONNECTOR = {
    "connector": "out",
    "type": "files",
    "direction": "sink",
    "topic": ["orders"],
    "file": "/srv/out.toml",
    "state": "running",
    "began": 1795000000.0,
    "updated": 1795000100.0,
    "error": None,
    "rows": 12,
    "batch": 3,
    "batch_seconds": 0.4,
    "at": 1795000099.5,
    "rows_per_second": 1.5,
    "lag_rows": 0,
    "lag_seconds": 0.0,
}
FLOW = {"flow": "large", "output": "orders.large", "state": "running", "rows_in": 5, "error": None}
PIPELINE = {
    "pipeline": "shop",
    "version": None,
    "state": "running",
    "pid": 4711,
    "host": "here",
    "updated": 1795000100.0,
    "began": 1795000000.0,
    "master": "local[*]",
    "flows": [FLOW],
}


def test_a_connectors_state_goes_on(tmp_path):
    home = tmp_path / "out"
    (home / "checkpoint").mkdir(parents=True)
    (home / "lock").write_text("4711")
    (home / "status.json").write_text(json.dumps(CONNECTOR))
    identity = {"type": "files", "topic": ["orders"], "path": "/data"}
    (home / "identity.json").write_text(json.dumps(identity))
    (home / "topics.json").write_text(json.dumps({"orders": "yJKqIGPvQ4WC6yIzgwHFnA"}))
    (home / "start.json").write_text(json.dumps({"at": 7}))
    (home / "stop").touch()
    (state,) = all_states(tmp_path)
    status = state.status()
    assert (status.name, status.state, status.pid, status.rows) == ("out", "died", None, 12)
    assert status.facts == CONNECTOR
    state.lock()
    assert not state.is_asked_to_stop
    state.keep_identity(identity)
    with pytest.raises(ConnectorError, match="was started with another path"):
        state.keep_identity({**identity, "path": "/elsewhere"})
    assert state.keep_start(lambda: {"at": 0}) == {"at": 7}
    assert not state.keep_topic("orders", "yJKqIGPvQ4WC6yIzgwHFnA")
    state.release()
    assert State(tmp_path, "out").checkpoint == home / "checkpoint"


def test_a_pipelines_files_go_on(tmp_path):
    home = tmp_path / ".headrace"
    home.mkdir()
    for name in ("current", "v2"):
        (home / f"{name}.lock").touch()
        version = None if name == "current" else name
        (home / f"{name}.json").write_text(json.dumps({**PIPELINE, "version": version}))
    (home / "current.stop").touch()
    current, second = versions(tmp_path)
    assert (current.version, second.version) == (None, "v2")
    assert current.read() == {**PIPELINE, "state": "died"}
    current.hold()
    assert not current.is_asked_to_stop
    assert current.read()["state"] == "running"
    current.write("shop", "stopped", [FLOW])
    current.release()
    look = RunState(tmp_path).read()
    assert {*look} >= {*PIPELINE} - {"began", "master"}

"""The files a run leaves for `status`, when a power cut has damaged them."""

from headrace.pipelines.state import RunState


def test_numbers_that_a_power_cut_has_damaged_are_told_not_a_traceback(tmp_path):
    state = RunState(tmp_path)
    state.hold()
    state.write("shop", "running", [])
    (tmp_path / ".headrace/current.json").write_text("")
    assert state.read()["state"] == "running"
    state.release()
    look = state.read()
    assert (look["state"], look["flows"]) == ("died", [])
    assert "current.json is damaged" in look["error"]

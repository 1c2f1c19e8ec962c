"""Connectors run by a program, without a command: start, look, stop."""

import json
import re
import textwrap
import uuid
from pathlib import Path

import pytest
import urllib3

from headrace.connectors import ConfigError, ConnectorError, run
from headrace.connectors.state import State

GUIDE = Path(__file__).parents[2] / "docs" / "connectors.md"


@pytest.fixture
def gate(bootstrap, new_topic):
    """An endpoint as a program declares it."""

    def make(name="gate", **topic):
        return {
            "name": name,
            "topic": {"name": new_topic(), "bootstrap": bootstrap, **topic},
            "source": {"type": "http-endpoint", "listen": "127.0.0.1:0"},
        }

    return make


def test_a_program_starts_a_connector_looks_at_it_and_stops_it(gate, read_all, tmp_path, connect):
    declared = gate()
    running = run(declared, state=tmp_path / "state")
    (status,) = running.statuses
    assert (status.name, status.state, status.error) == ("gate", "running", None)
    url = f"http://{status.facts['listening']}/"
    assert urllib3.request("POST", url, json={"id": 1}, retries=False).status == 200
    (seen,) = json.loads(connect("status", "--state", "state", "--json"))
    assert (seen["state"], seen["pid"]) == ("running", status.pid)
    running.stop()
    (status,) = running.statuses
    assert (status.state, status.rows, status.pid) == ("stopped", 1, None)
    assert len(read_all(declared["topic"]["name"])) == 1
    (seen,) = json.loads(connect("status", "--state", "state", "--json"))
    assert (seen["state"], seen["pid"]) == ("stopped", None)
    with pytest.raises(urllib3.exceptions.HTTPError):
        urllib3.request("POST", url, json={"id": 2}, retries=False)


def test_the_stop_command_stops_what_a_program_runs(gate, tmp_path, connect):
    running = run(gate("one"), gate("two"), state=tmp_path / "state")
    assert connect("stop", "one", "--state", "state") == "one: stopped\n"
    assert running.is_active
    assert connect("stop", "--state", "state") == "two: stopped\n"
    assert running.wait(60)
    assert [status.state for status in running.statuses] == ["stopped", "stopped"]


def test_what_cannot_start_is_raised_and_nothing_is_left(gate, bootstrap, tmp_path):
    sink = {
        "name": "out",
        "topic": {"name": f"none-{uuid.uuid4().hex[:8]}", "bootstrap": bootstrap},
        "sink": {"type": "files", "path": str(tmp_path / "out")},
    }
    with pytest.raises(ConnectorError, match=r"^out: topic.name is 'none-.*create it with"):
        run(gate(), sink, state=tmp_path)
    for name, state in {"gate": "stopped", "out": "failed"}.items():
        status = State(tmp_path, name).status()
        assert (status.state, status.pid) == (state, None)
    with pytest.raises(ConfigError, match=r"source.type is 'nothing'"):
        run({**gate(), "source": {"type": "nothing"}}, state=tmp_path)
    with pytest.raises(ConnectorError, match="a connector named gate; give one of them another name"):
        run(gate(), gate(), state=tmp_path)
    with pytest.raises(ConnectorError, match="at least one"):
        run()


def test_a_connector_runs_once_at_a_time_also_in_one_process(gate, tmp_path):
    with run(gate(), state=tmp_path), pytest.raises(ConnectorError, match="gate runs already"):
        run(gate(), state=tmp_path)
    run(gate(), state=tmp_path).stop()


@pytest.mark.timeout(900)
def test_the_guides_example_runs_on_the_programs_own_spark(
    spark, bootstrap, new_topic, read_all, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    topic = new_topic()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.json").write_text('{"id": 1}\n{"id": 2}\n')
    (tmp_path / "orders.toml").write_text(
        f'[topic]\nname = "{topic}"\nbootstrap = "{bootstrap}"\n'
        f'[source]\ntype = "files"\npath = "{tmp_path}/in"\nline_timeout = 0\n'
    )
    (tmp_path / "gate.toml").write_text(
        f'[topic]\nname = "{topic}"\nbootstrap = "{bootstrap}"\n'
        '[source]\ntype = "http-endpoint"\nlisten = "127.0.0.1:0"\n'
    )
    (example,) = re.findall(r"### From Python\n.*?```python\n(.*?)```", GUIDE.read_text(), re.S)
    exec(compile(textwrap.dedent(example), str(GUIDE), "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["orders", "gate"]
    assert sorted(json.loads(record.value)["id"] for record in read_all(topic)) == [1, 2]
    assert State(tmp_path / ".headrace" / "connect", "orders").status().state == "done"
    assert spark.range(3).count() == 3

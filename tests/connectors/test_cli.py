"""`headrace connect` as users run it: new, check, list, run, status, stop, and a whole process killed in the middle."""

import json
import os
import re
import signal
import socket
import tomllib

import pytest
import urllib3

from headrace.connectors.config import declare
from headrace.connectors.errors import ConfigError
from headrace.connectors.template import template


def test_every_template_says_all_that_must_be_given(connect, monkeypatch):
    monkeypatch.setenv("PASSWORD", "secret")
    kinds = json.loads(connect("list", "--types", "--json"))
    assert {(kind["direction"], kind["type"]) for kind in kinds} >= {("source", "sql"), ("sink", "webhook")}
    for kind in kinds:
        document = tomllib.loads(template(kind["direction"], kind["type"], "mine"))
        if kind["type"] == "sql" and kind["direction"] == "sink":
            document["sink"]["key"] = "id"  # must be given for upserts, and not for inserts
        assert declare(document, default_name="x").name == "mine"


def problems_in(document):
    try:
        declare(document, default_name="x")
    except ConfigError as error:
        return error.problems
    return []


def test_every_setting_of_a_template_could_be_taken_as_it_stands(connect):
    for kind in json.loads(connect("list", "--types", "--json")):
        text = template(kind["direction"], kind["type"], "mine")
        document = tomllib.loads(re.sub(r"^# (?=\w+ = )", "", text, flags=re.M).replace("${", "{"))
        problems = problems_in(document)  # some contradict each other; but each is what its setting takes
        assert not [problem for problem in problems if "it must be" in problem or "choose" in problem]
        assert '"..."' not in text


def test_where_nothing_was_run_that_is_said_with_what_to_do(connect):
    for command in ("status", "list"):
        assert connect(command) == ""
        assert connect(command, "--json") == "[]\n"
    for command in (("stop",), ("stop", "orders"), ("status", "orders")):
        told = connect(*command, code=1)
        assert "No connector was run here: .headrace/connect holds nothing. Start one with" in told


def test_new_writes_a_file_and_never_over_one(connect, tmp_path):
    connect("new", "source", "files", "orders.toml")
    assert tomllib.loads((tmp_path / "orders.toml").read_text())["name"] == "orders"
    assert "is there already" in connect("new", "source", "files", "orders.toml", code=1)
    assert "did you mean files?" in connect("new", "source", "fils", code=2)


def test_check_tells_each_mistake_in_a_line(connect, tmp_path, bootstrap, new_topic):
    (tmp_path / "a.toml").write_text('[topic]\nname = "t"\n[source]\ntype = "files"\npth = "/none/x"\n')
    told = connect("check", "a.toml", code=1)
    assert "a.toml: source.pth is not a setting of the files source; did you mean path?" in told
    assert "a.toml: source.path is missing" in told
    assert "headrace: 2 problems to fix before this can run." in told
    (tmp_path / "b.toml").write_text('[topic]\nname = "t"\n[source]\ntype = "files"\npath = "/none/x"\n')
    assert "there is no directory /none" in connect("check", "b.toml", code=1)
    (tmp_path / "c.toml").write_text(
        f'[topic]\nname = "{new_topic()}x"\n[sink]\ntype = "files"\npath = "/tmp"\n'
    )
    assert "did you mean test-" in connect("check", "c.toml", "-b", bootstrap, code=1)
    assert connect("check", "b.toml", "--offline") == "No problems: 1 connector can run.\n"
    assert "2 problems to fix before a.toml can run." in connect("run", "a.toml", code=1)


def test_an_endpoint_runs_without_spark_until_it_is_stopped(
    connect, started, bootstrap, new_topic, read_all, tmp_path
):
    topic = new_topic()
    (tmp_path / "gate.toml").write_text(
        f'[topic]\nname = "{topic}"\n[source]\ntype = "http-endpoint"\nlisten = "127.0.0.1:0"\n'
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        metrics = f"127.0.0.1:{probe.getsockname()[1]}"
    running = started("run", "gate.toml", "-b", bootstrap, "--json", "--metrics", metrics)
    first = json.loads(running.stdout.readline())
    assert (
        urllib3.request("POST", f"http://{first['listening']}/", json={"id": 1}, retries=False).status == 200
    )
    assert "runs already" in connect("run", "gate.toml", "-b", bootstrap, code=1)
    (look,) = json.loads(connect("status", "gate", "--json"))
    assert (look["state"], look["pid"]) == ("running", running.pid)
    page = urllib3.request("GET", f"http://{metrics}/metrics", retries=False).data.decode()
    assert 'headrace_connector_state{connector="gate",state="running"} 1.0' in page
    assert 'headrace_connector_rows_total{connector="gate"}' in page
    assert "is no address for metrics" in connect(
        "run", "gate.toml", "--metrics", "9466", "-b", bootstrap, code=1
    )
    assert connect("stop", "gate") == "gate: stopped\n"
    assert running.wait(60) == 0
    assert len(read_all(topic)) == 1
    assert "gate" in connect("list")
    assert "None of these connectors is running." in connect("stop", code=1)
    assert "No connector 'gat' was run here. Did you mean 'gate'?" in connect("status", "gat", code=1)


def test_nothing_starts_when_one_of_several_cannot(connect, bootstrap, new_topic, tmp_path):
    topic = new_topic()
    (tmp_path / "gate.toml").write_text(
        f'[topic]\nname = "{topic}"\n[source]\ntype = "http-endpoint"\nlisten = "127.0.0.1:0"\n'
    )
    (tmp_path / "out.toml").write_text('[topic]\nname = "none"\n[sink]\ntype = "files"\npath = "out"\n')
    told = connect("run", "gate.toml", "out.toml", "-b", bootstrap, code=1)
    assert told.startswith("headrace: out.toml: topic.name is 'none', which ")
    gate, out = json.loads(connect("status", "--json"))
    assert (gate["state"], gate["error"]) == ("stopped", None)
    assert out["state"] == "failed"
    assert out["error"].startswith("topic.name is 'none'")


@pytest.mark.parametrize("columns", [80, 120])
def test_the_live_table_fits_its_terminal_and_ends_with_what_is_true(
    bootstrap, new_topic, tmp_path, terminal, columns
):
    topic = new_topic()
    (tmp_path / "gate.toml").write_text(
        f'[topic]\nname = "{topic}"\n[source]\ntype = "http-endpoint"\nlisten = "127.0.0.1:0"\n'
    )
    shown = terminal(columns, "run", "gate.toml", "-b", bootstrap)
    shown.read_until("running")
    os.kill(shown.pid, signal.SIGINT)
    assert shown.wait() == 130
    assert "Traceback" not in shown.text
    *_, last = [line for line in shown.screen if "gate" in line]
    assert "stopped" in last
    assert sum("CONNECTOR" in line for line in shown.screen) == 1
    assert max(map(len, shown.screen)) <= columns


@pytest.mark.long
@pytest.mark.timeout(900)
def test_files_go_through_a_topic_to_files_once_although_the_whole_process_is_killed(
    connect, started, bootstrap, new_topic, read_all, tmp_path, eventually
):
    topic = new_topic(2)
    (tmp_path / "in").mkdir()
    out = tmp_path / "out"
    (tmp_path / "in.toml").write_text(
        f'[topic]\nname = "{topic}"\nkey = "id"\n[source]\ntype = "files"\npath = "{tmp_path}/in"\nmax_bytes = 2000\n'
    )
    (tmp_path / "out.toml").write_text(
        f'[topic]\nname = "{topic}"\nschema = "id BIGINT"\nmax_records = 50\n[sink]\ntype = "files"\npath = "{out}"\n'
    )

    def grow(first, last):
        with open(tmp_path / "in" / "orders.json", "a") as file:
            file.writelines(f'{{"id": {number}}}\n' for number in range(first, last))

    grow(0, 400)
    running = started(
        "run", "in.toml", "out.toml", "-b", bootstrap, "-m", "local[2]", "--conf", "spark.driver.memory=512m"
    )
    eventually(lambda: running.poll() is not None or len(list(out.glob("*.jsonl"))) > 2, seconds=600)
    assert running.poll() is None, (tmp_path / "stderr").read_text()
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert {look["state"] for look in json.loads(connect("list", "--json"))} == {"died"}
    grow(400, 500)
    connect("run", "in.toml", "--once", "-b", bootstrap, "-m", "local[2]")
    assert sorted(json.loads(record.value)["id"] for record in read_all(topic)) == list(range(500))
    told = connect("run", "out.toml", "--once", "-b", bootstrap, "-m", "local[2]")
    assert "out: done" in told
    written = [json.loads(line)["id"] for path in out.glob("*.jsonl") for line in path.open()]
    assert sorted(written) == list(range(500))
    (tmp_path / "out.toml").write_text((tmp_path / "out.toml").read_text().replace(str(out), f"{out}2"))
    assert "was started with another path" in connect("run", "out.toml", "--once", "-b", bootstrap, code=1)

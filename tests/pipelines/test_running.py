"""A pipeline run by a program, without a command: start, look, stop."""

import json
import re
import textwrap
from pathlib import Path

import pytest

from headrace import pipelines as hp
from headrace.pipelines.errors import BadArgument, ProjectBroken
from headrace.pipelines.state import RunState

GUIDE = Path(__file__).parents[2] / "docs" / "pipelines.md"
FLOW = """
    from headrace import pipelines as hp

    orders = hp.topic("{name}", "id BIGINT, amount DOUBLE", partitions=1)

    @hp.topic("{name}.large", key="id")
    def large_orders():
        return orders.stream().where("amount >= 100")
"""


@pytest.fixture
def shop(write_project, cluster, spark):
    """A project of its own topics, with two orders to look at."""

    def make(name):
        root = write_project({"flow.py": FLOW.format(name=name)}, name)
        cluster.create(name)
        cluster.send(name, {"id": 1, "amount": 5}, {"id": 2, "amount": 500})
        return root

    return make


def test_a_program_runs_a_project_looks_at_its_flows_and_stops_it(shop, cluster, bootstrap):
    root = shop("followed")
    with hp.run(root, bootstrap=bootstrap, interval=0.1) as running:
        while not cluster.rows("followed.large"):
            assert not running.wait(0.1)
        assert RunState(root).is_alive
        with pytest.raises(hp.PipelineError, match="already running"):
            hp.run(root, bootstrap=bootstrap)
    flows = {status.flow: status for status in running.statuses}
    assert flows["large_orders"].state == "stopped"
    look = RunState(root).read()
    assert (look["state"], [flow["flow"] for flow in look["flows"]]) == ("stopped", list(flows))
    assert not RunState(root).is_alive


def test_a_run_of_a_program_can_be_stopped_from_elsewhere(shop, bootstrap):
    root = shop("asked")
    running = hp.run(root, bootstrap=bootstrap)
    state = RunState(root)
    state.ask_to_stop()
    assert running.wait(300)
    assert state.read()["state"] == "stopped"


def test_what_cannot_run_is_raised_and_reported(write_project, shop, bootstrap, spark):
    broken = write_project({"flow.py": "nonsense("}, "broken")
    with pytest.raises(ProjectBroken, match=r"flow.py:1"):
        hp.run(broken, bootstrap=bootstrap)
    assert RunState(broken).read()["state"] == "failed"
    assert not RunState(broken).is_alive
    root = shop("named")
    with pytest.raises(BadArgument, match="no flow 'large' to reset"):
        hp.run(root, bootstrap=bootstrap, reset=["large"])
    with pytest.raises(BadArgument, match="A version is named with"):
        hp.run(root, bootstrap=bootstrap, version="v/2")
    with pytest.raises(hp.PipelineError, match="There is no directory"):
        hp.run(root / "nowhere")


def test_the_guides_example_runs_on_the_programs_own_spark(
    shop, cluster, bootstrap, spark, monkeypatch, capsys
):
    root = shop("orders")
    monkeypatch.chdir(root.parent)
    with (root / "spark-pipeline.yml").open("a") as spec:
        spec.write(f"configuration:\n  spark.headrace.bootstrap.servers: {bootstrap}\n")
    (example,) = re.findall(r"### From Python\n.*?```python\n(.*?)```", GUIDE.read_text(), re.S)
    exec(compile(textwrap.dedent(example), str(GUIDE), "exec"), {})
    assert "large_orders" in capsys.readouterr().out
    assert [row["id"] for row in cluster.rows("orders.large")] == [2]
    assert json.loads((root / ".headrace" / "current.json").read_text())["state"] == "done"
    assert spark.range(3).count() == 3

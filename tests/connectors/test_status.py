"""What `connect status` says of a connector whose cluster is away, whose topic is not there yet, or that is done."""

import json
import uuid

import pytest

from headrace.client import lag_watch
from headrace.client.record import TopicPartition
from headrace.connectors.base import Running
from headrace.connectors.config import declare
from headrace.connectors.job import Job
from headrace.connectors.state import State
from headrace.testing.process import BrokerProcess

GATE = '[topic]\nname = "{topic}"\n[source]\ntype = "http-endpoint"\nlisten = "127.0.0.1:0"\n'
OUT = '[topic]\nname = "{topic}"\n[sink]\ntype = "files"\npath = "out"\n'


class Ended(Running):
    """Has done all there was to do."""

    def is_active(self):
        return False

    def failure(self):
        return None

    def facts(self):
        return {"rows": 3}

    def stop(self):
        pass


def reported(job):
    job.report()
    return job.status.facts


def test_a_sink_that_is_done_shows_the_lag_of_its_end(
    bootstrap, admin, new_topic, produce, tmp_path, eventually, monkeypatch
):
    monkeypatch.setattr(
        lag_watch, "_LAST_MEASURE", 60.0
    )  # a busy machine may need more than is kept for users
    topic, group = new_topic(), f"group-{uuid.uuid4().hex[:8]}"
    produce(topic, [1, 2, 3])
    document = {
        "topic": {"bootstrap": bootstrap, "name": topic, "group": group},
        "sink": {"type": "files", "path": str(tmp_path / "out")},
    }
    job = Job(declare(document, default_name="out"), State(tmp_path / "state", "out"))
    job.state.lock()
    partition = TopicPartition(topic, 0)
    admin.set_group_offsets(group, {partition: 1})
    job.started(Ended())
    eventually(lambda: reported(job).get("lag_rows") == 2)
    admin.set_group_offsets(group, {partition: 3})
    job.look_after()
    facts = job.state.status().facts
    assert (facts["state"], facts["lag_rows"]) == ("done", 0)


def test_a_source_has_no_lag_though_a_group_has_its_name(
    bootstrap, admin, new_topic, produce, tmp_path, eventually
):
    topic, name = new_topic(), f"gate-{uuid.uuid4().hex[:8]}"
    produce(topic, [1, 2, 3])
    admin.set_group_offsets(f"connect-{name}", {TopicPartition(topic, 0): 1})
    document = {
        "topic": {"bootstrap": bootstrap, "name": topic},
        "source": {"type": "http-endpoint", "listen": "127.0.0.1:0"},
    }
    watch = lag_watch.LagWatch({"bootstrap.servers": bootstrap}, [f"connect-{name}"])
    job = Job(declare(document, default_name=name), State(tmp_path / "state", name))
    job.started(Ended())
    eventually(lambda: watch.lag(f"connect-{name}") is not None)
    watch.close()
    job.stop()
    assert "lag_rows" not in job.status.facts


@pytest.mark.timeout(600)
def test_a_connector_whose_cluster_is_away_waits_and_says_for_what(connect, started, tmp_path, eventually):
    broker = BrokerProcess(tmp_path / "broker").start()
    try:
        (tmp_path / "gate.toml").write_text(GATE.format(topic="calls"))
        running = started("run", "gate.toml", "-b", broker.bootstrap)
        assert running.stdout.readline().startswith("gate: ")

        def look():
            (status,) = json.loads(connect("status", "--json"))
            return status["state"], status["error"]

        eventually(lambda: look() == ("running", None))
        broker.kill()
        away = f"the cluster at {broker.bootstrap} does not answer"
        eventually(lambda: look() == ("waiting", away), seconds=120)
        assert f"gate: {away}" in connect("status")
        broker.start()
        eventually(lambda: look() == ("running", None), seconds=120)
    finally:
        broker.kill()


def test_a_sink_may_read_what_a_source_beside_it_creates(connect, bootstrap, tmp_path):
    topic = f"new-{uuid.uuid4().hex[:8]}"
    (tmp_path / "gate.toml").write_text(GATE.format(topic=topic))
    (tmp_path / "out.toml").write_text(OUT.format(topic=topic))
    assert (
        connect("check", "gate.toml", "out.toml", "-b", bootstrap) == "No problems: 2 connectors can run.\n"
    )
    told = connect("check", "out.toml", "-b", bootstrap, code=1)
    assert f"topic.name is '{topic}', which {bootstrap} does not have" in told
    assert f"'headrace topics create {topic}', or run the source that fills it along with this sink" in told
    assert "does not have" in connect("run", "out.toml", "-b", bootstrap, code=1)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_source_and_a_sink_of_its_new_topic_run_together(connect, bootstrap, tmp_path, read_all):
    topic = f"new-{uuid.uuid4().hex[:8]}"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text('{"id": 1}\n{"id": 2}\n')
    (tmp_path / "fill.toml").write_text(
        f'[topic]\nname = "{topic}"\n[source]\ntype = "files"\npath = "in/*.txt"\n'
    )
    (tmp_path / "out.toml").write_text(OUT.format(topic=topic))
    # The sink first, so that it is not the source's start that creates the topic.
    connect("run", "out.toml", "fill.toml", "-b", bootstrap, "--once")
    assert len(read_all(topic)) == 2
    states = {each["connector"]: each["state"] for each in json.loads(connect("status", "--json"))}
    assert states == {"out": "done", "fill": "done"}

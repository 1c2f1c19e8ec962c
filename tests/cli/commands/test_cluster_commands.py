"""`headrace cluster`, `reassign` and `elect-leaders`, and Kafka's tools for the same, against three brokers."""

from __future__ import annotations

import json
import re

import pytest

from headrace.testing.cluster import threads
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = threads(
        tmp_path_factory.mktemp("cluster"),
        settings={"leader.imbalance.check.interval.seconds": "3600", "offsets.topic.num.partitions": "3"},
        racks=("a", "b", "c"),
    )
    yield running
    running.stop()


@pytest.fixture
def bootstrap(cluster):
    return cluster.bootstrap


@pytest.fixture
def make_topic(headrace, name):
    def make(assignment, *settings):
        created = headrace("topics", "create", name, "--replica-assignment", assignment, *settings)
        assert created.code == 0, created.err
        return name

    yield make
    headrace("topics", "delete", name, "--if-exists")


def replicas_of(headrace, topic):
    (found,) = headrace("topics", "describe", topic, "--json").json
    return [partition["replicas"] for partition in found["partitions"]]


def test_a_cluster_is_described(headrace, make_topic):
    make_topic("1:2,2:3,3:1")
    ran = headrace("cluster", "describe")
    head, header, *brokers = ran.lines
    assert head.startswith("Cluster ")
    assert "controller" in head
    assert header.split()[:4] == ["BROKER", "ADDRESS", "RACK", "STATE"]
    assert [line.split()[:1] + line.split()[2:4] for line in brokers] == [
        ["1", "a", "up"],
        ["2", "b", "up"],
        ["3", "c", "up"],
    ]
    described = headrace("cluster", "describe", "--json").json
    assert [(b["leads"], b["replicas"], b["in_sync"]) for b in described["brokers"]] == [(1, 2, 2)] * 3
    assert described["partitions"] == 3


def test_a_cluster_that_is_well_says_so(headrace, make_topic):
    make_topic("1:2,2:3")
    ran = headrace("cluster", "health", "--wait", 30)
    assert (ran.code, ran.lines[0]) == (0, "The cluster is healthy: 2 partitions")
    assert headrace("cluster", "health", "--json").json["healthy"] is True


def test_a_broker_that_is_down_shows_in_every_row_it_touches(cluster, headrace, make_topic):
    topic = make_topic("1:2,2:1", "--config", "min.insync.replicas=2")
    headrace("topics", "create", f"{topic}-lone", "--replica-assignment", "2")
    cluster[2].stop()
    try:
        until(lambda: headrace("cluster", "health", "--json").json["dead"] == [2], "broker 2 is down")
        ran = headrace("cluster", "health")
        assert ran.code == 1
        assert ran.lines[0] == "The cluster is NOT healthy: 3 partitions"
        found = headrace("cluster", "health", "--json").json
        assert found["healthy"] is False
        assert [p["topic"] for p in found["offline"]] == [f"{topic}-lone"]
        assert [p["partition"] for p in found["under_replicated"]] == [0, 1]
        assert [p["partition"] for p in found["under_min_isr"]] == [0, 1]
        assert [(b["id"], b["live"]) for b in headrace("cluster", "describe", "--json").json["brokers"]] == [
            (1, True),
            (2, False),
            (3, True),
        ]
        preview = headrace("elect-leaders", f"{topic}-lone", "--unclean")
        assert "Nothing was changed" in preview.err
        assert "bring one of those brokers back" in preview.err
        refused = headrace("elect-leaders", f"{topic}-lone", "--unclean", "--execute")
        assert refused.code == 1
        assert "leaders are not available" in refused.err
    finally:
        cluster[2].start()
    skewed = headrace("cluster", "health", "--wait", 1, "--json").json
    assert [p["partition"] for p in skewed["leader_skewed"]] == [1]
    assert headrace("elect-leaders", topic, "--json").json["elected"] == [
        {"topic": topic, "partition": 1, "leader": 2}
    ]
    assert headrace("cluster", "health", "--wait", 30).code == 0
    assert "preferred leaders lead" in headrace("elect-leaders").err
    headrace("topics", "delete", f"{topic}-lone")


def test_a_plan_is_made_previewed_executed_and_taken_back(headrace, make_topic, tmp_path):
    topic = make_topic("1:2,1:2,1:2")
    headrace("produce", topic, stdin="a\nb\nc\n")
    made = headrace("reassign", "plan", topic)
    plan, back = tmp_path / "plan.json", tmp_path / "back.json"
    plan.write_text(made.out)
    moves = made.json["partitions"]
    assert made.json["version"] == 1
    assert {move["topic"] for move in moves} == {topic}
    assert "2 replicas to copy" in made.err
    preview = headrace("reassign", "execute", plan)
    assert "Nothing was changed; add --execute" in preview.err
    assert replicas_of(headrace, topic) == [[1, 2]] * 3
    done = headrace("reassign", "execute", plan, "--execute", "--wait", "--rollback", back)
    assert re.search(r"^Done: \d+ partitions? moved in [\d.]+ s\.$", done.err, re.MULTILINE)
    assert done.code == 0, done.err
    after = replicas_of(headrace, topic)
    assert sorted(broker for replicas in after for broker in replicas) == [1, 1, 2, 2, 3, 3]
    assert sorted(replicas[0] for replicas in after) == [1, 2, 3]
    assert headrace("reassign", "plan", topic).json["partitions"] == []
    assert headrace("reassign", "execute", back, "--execute", "--wait", "--json").json["executed"] is True
    assert {tuple(replicas) for replicas in replicas_of(headrace, topic)} == {(1, 2)}
    assert headrace("consume", topic, "--from-beginning", "--until-end").lines != []


def test_a_broker_is_emptied_and_a_replication_factor_raised(headrace, make_topic, tmp_path):
    topic = make_topic("1:2,2:3")
    emptied = headrace("reassign", "plan", topic, "--remove", 2).json["partitions"]
    assert all(sorted(move["replicas"]) == [1, 3] for move in emptied)
    raised = headrace("reassign", "plan", topic, "--replication-factor", 3)
    assert all(sorted(move["replicas"]) == [1, 2, 3] for move in raised.json["partitions"])
    plan = tmp_path / "plan.json"
    plan.write_text(raised.out)
    assert headrace("reassign", "execute", plan, "--execute", "--wait").code == 0
    assert [sorted(replicas) for replicas in replicas_of(headrace, topic)] == [[1, 2, 3]] * 2


def test_moves_that_cannot_end_are_shown_and_cancelled(cluster, headrace, make_topic, tmp_path):
    topic = make_topic("1:2")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": [1, 3]}]}))
    cluster[3].stop()
    try:
        until(lambda: headrace("cluster", "health", "--json").json["dead"] == [3], "broker 3 is down")
        assert headrace("reassign", "execute", plan, "--execute", "--throttle", 1_000_000).code == 0
        (move,) = headrace("reassign", "status", "--json").json
        assert (move["replicas"], move["adding"], move["removing"]) == ([1, 3], [3], [2])
        assert headrace("reassign", "status").lines[1].split()[:5] == [topic, "0", "1,3", "3", "2"]
        again = headrace("reassign", "execute", plan, "--execute")
        assert again.code == 1
        assert "add --additional" in again.err
        configs = headrace("configs", "describe", "topic", topic, "--json").json
        assert f"{configs}".count("0:1,0:2") == 1
        assert headrace("reassign", "cancel", topic).err == "Nothing was changed; add --execute to do it.\n"
        cancelled = headrace("reassign", "cancel", "--all", "--execute", "--json").json
        assert cancelled["partitions"] == [{"topic": topic, "partition": 0, "from": [1, 3], "to": [1, 2]}]
        assert headrace("reassign", "status").err == "No partition is on the move.\n"
        assert headrace("reassign", "unthrottle").err == "There is no throttle.\n"
        assert replicas_of(headrace, topic) == [[1, 2]]
    finally:
        cluster[3].start()


def test_bad_input_gets_one_sentence(headrace, make_topic):
    topic = make_topic("1:2")
    for arguments, sentence in (
        (("plan", topic, "--remove", "9"), "There is no broker 9"),
        (("plan", topic, "--brokers", "x"), "--brokers takes the numbers of brokers"),
        (("plan", topic, "--replication-factor", "4"), "only 3 live ones"),
        (("execute", "missing.json"), "Cannot read missing.json"),
        (("cancel",), "Say which moves"),
    ):
        ran = headrace("reassign", *arguments)
        assert ran.code in (1, 2)
        assert sentence in ran.err
        assert len(ran.err.splitlines()) == 1


# --- Kafka's own names ---


def test_kafkas_reassignment_tool(headrace, make_topic, tmp_path):
    topic = make_topic("1:2,1:2")
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"topics": [{"topic": topic}], "version": 1}))
    tool = ("kafka", "reassign-partitions")
    generated = headrace(
        *tool,
        "--zookeeper",
        "localhost:2181",
        "--topics-to-move-json-file",
        topics,
        "--broker-list",
        "2,3",
        "--generate",
    )
    assert generated.lines[0] == "Current partition replica assignment"
    assert generated.lines[3] == "Proposed partition reassignment configuration"
    proposed = json.loads(generated.lines[4])
    assert all(sorted(entry["replicas"]) == [2, 3] for entry in proposed["partitions"])
    plan.write_text(generated.lines[4])
    started = headrace(*tool, "--execute", "--reassignment-json-file", plan, "--throttle", 10_000_000)
    assert started.lines[-2] == "The inter-broker throttle limit was set to 10000000 B/s"
    assert started.lines[-1] == f"Successfully started partition reassignments for {topic}-0,{topic}-1"

    def verified():
        return headrace(*tool, "--verify", "--reassignment-json-file", plan).lines

    until(lambda: "in progress" not in " ".join(verified()), "the moves are done")
    assert verified() == [
        "Status of partition reassignment:",
        f"Reassignment of partition {topic}-0 is completed.",
        f"Reassignment of partition {topic}-1 is completed.",
        "",
        "Clearing broker-level throttles on brokers 1,2,3",
        f"Clearing topic-level throttles on topic {topic}",
    ]
    assert headrace(*tool, "--list").out == "No partition reassignments found.\n"
    assert headrace(*tool, "--cancel", "--reassignment-json-file", plan).lines[0] == (
        "None of the specified partition reassignments are active."
    )
    assert headrace(*tool, "--execute", "--list").code == 1


def test_kafkas_election_tool(headrace, make_topic, tmp_path):
    topic = make_topic("1:2")
    tool = ("kafka", "leader-election", "--election-type", "preferred")
    assert headrace(*tool, "--topic", topic, "--partition", 0).out == (
        f"Valid replica already elected for partitions {topic}-0\n"
    )
    partitions = tmp_path / "partitions.json"
    partitions.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 7}]}))
    ran = headrace(*tool, "--path-to-json-file", partitions)
    assert ran.code == 1
    assert f"Error completing leader election (PREFERRED) for partition: {topic}-7" in ran.out
    assert headrace(*tool, "--all-topic-partitions").code == 0
    assert headrace("kafka", "leader-election", "--topic", topic).code == 1


def test_kafkas_cluster_tool(headrace):
    assert headrace("kafka", "cluster", "cluster-id").out.startswith("Cluster ID: ")
    endpoints = headrace("kafka", "cluster", "list-endpoints").lines
    assert [line.split()[0] for line in endpoints[1:]] == ["1", "2", "3"]
    assert headrace("kafka", "cluster", "unregister", "--id", 9).code == 1

"""Three brokers: Kafka's reassignment and election tools, and clients of three kinds through a leader's death."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.provision import java
from bench.systems.clusters import ClusterSystem, HeadraceOnZooKeeper, KafkaCluster, OneByOne
from interop.kafka.programs import FRANZ, JAVA_CLIENT, finish
from tests.waiting import until

Tool = Callable[..., str]

COUNT = 600


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneByOne]:
    against_kafka = request.config.getoption("--against") == "kafka"
    system: ClusterSystem = KafkaCluster() if against_kafka else HeadraceOnZooKeeper()
    system.prepare()
    running = system.start(tmp_path_factory.mktemp("cluster") / "data")
    assert isinstance(running, OneByOne)
    with running:
        yield running


@pytest.fixture(scope="module")
def tools(cluster: OneByOne) -> Tool:
    def call(name: str, *arguments: str) -> str:
        command = java(f"org.apache.kafka.tools.{name}")
        return finish([*command, "--bootstrap-server", cluster.address, *arguments], limit=120)

    return call


def test_the_reassignment_tool_moves_replicas_and_verifies(
    cluster: OneByOne, tools: Tool, tmp_path: Path
) -> None:
    tools("TopicCommand", "--create", "--topic", "moved", "--replica-assignment", "1:2,2:3,3:1")
    cluster.load("produce", topic="moved", partitions=3, records=3000, acks="all")
    wanted = {0: [3, 2], 1: [1, 3], 2: [2, 1]}
    plan = {
        "version": 1,
        "partitions": [
            {"topic": "moved", "partition": number, "replicas": replicas}
            for number, replicas in wanted.items()
        ],
    }
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    tool = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(file))
    begun = tools(*tool, "--execute", "--throttle", "50000000")
    assert "Successfully started partition reassignments" in begun
    until(lambda: tools(*tool, "--verify").count("is completed.") == 3, "the move is complete")
    assert "No partition reassignments found." in tools("reassign.ReassignPartitionsCommand", "--list")
    described = tools("TopicCommand", "--describe", "--topic", "moved")
    for number, replicas in wanted.items():
        found = re.search(rf"Partition: {number}\tLeader: \d\tReplicas: (\S+)\tIsr: (\S+)", described)
        assert found is not None, described
        assert found[1] == ",".join(map(str, replicas))
        assert set(found[2].split(",")) == set(map(str, replicas))
    assert "throttled.replicas" not in described, "--verify takes the throttles away"


def test_the_election_tool_brings_preferred_leaders_back(cluster: OneByOne, tools: Tool) -> None:
    tools("TopicCommand", "--create", "--topic", "elected", "--replica-assignment", "3:1:2")
    cluster.stop_broker(3)
    until(
        lambda: "Leader: 3" not in tools("TopicCommand", "--describe", "--topic", "elected"),
        "another broker leads",
    )
    assert "Topic: elected" in tools("TopicCommand", "--describe", "--under-replicated-partitions")
    cluster.start_broker(3)
    until(
        lambda: "Topic: elected" not in tools("TopicCommand", "--describe", "--under-replicated-partitions"),
        "it is in sync again",
    )
    said = tools(
        "LeaderElectionCommand", "--election-type", "preferred", "--topic", "elected", "--partition", "0"
    )
    assert "elected-0" in said
    assert "Leader: 3" in tools("TopicCommand", "--describe", "--topic", "elected")


def _librdkafka(bootstrap: str, topic: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("steady.py")), bootstrap, topic, str(COUNT)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("client", ["java", "franz", "librdkafka"])
def test_clients_go_on_through_a_leaders_death(cluster: OneByOne, client: str) -> None:
    topic = f"steady-{client}"
    cluster.create(topic, 1)
    if client == "librdkafka":
        program = _librdkafka(cluster.address, topic)
    else:
        program = (JAVA_CLIENT if client == "java" else FRANZ).begin(
            "steady", cluster.address, topic, str(COUNT)
        )
    with program:
        assert program.stdout is not None
        said: list[str] = []
        killed = 0
        for line in program.stdout:
            said.append(line.strip())
            if len(said) == COUNT // 3:
                killed = cluster.admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
                cluster.kill_broker(killed)
        code = program.wait(60)
    assert killed, f"it did not come so far:\n{said}"
    cluster.start_broker(killed)
    cluster.await_in_sync(1)
    assert code == 0, "\n".join(line for line in said if not line.isdigit())
    assert [line for line in said if line.isdigit()] == [str(number) for number in range(COUNT)]

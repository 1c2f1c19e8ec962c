"""The newest Java client, which may be newer than the newest broker on Maven."""

import importlib

import pytest

from bench.provision import JAVA, Need, need_client_jar, need_kafka, need_packages, run
from headrace.server.api import registry
from headrace.testing.broker import BrokerThread
from headrace.wire.messages import KAFKA
from interop.kafka.programs import BUILD, HERE, finish

NEWEST = {
    "api_versions": 5,
    "delete_groups": 3,
    "describe_log_dirs": 5,
    "list_offsets": 11,
    "offset_commit": 10,
    "offset_fetch": 10,
    "txn_offset_commit": 6,
}
"""The newest version of each of these is asked."""


@pytest.fixture
def asked(monkeypatch):
    """The newest version of each request that was handled."""
    found = {}

    def watch(name, function):
        def watched(context, *arguments):
            found[name] = max(found.get(name, 0), context.version)
            return function(context, *arguments)

        return watched

    for name in NEWEST:
        module = importlib.import_module(f"headrace.server.api.{name}")
        entry = "handle" if hasattr(module, "handle") else "handle_frame"
        monkeypatch.setattr(module, entry, watch(name, getattr(module, entry)))
        monkeypatch.setitem(
            registry.APIS, registry.SERVED[name][0], registry.Api(name, *registry.SERVED[name])
        )
    return found


def test_the_newest_client_commits_by_id_moves_replicas_and_sees_the_quorum(tmp_path, asked):
    need_packages([JAVA, Need("javac", "default-jdk-headless")])
    jar = str(need_client_jar(KAFKA))
    classes = BUILD / "newest"
    classes.mkdir(parents=True, exist_ok=True)
    run(["javac", "-d", str(classes), "-cp", jar, str(HERE / "newest" / "Newest.java")])
    settings = {"log.dirs": f"{tmp_path}/one,{tmp_path}/two", "group.initial.rebalance.delay.ms": 0}
    with BrokerThread(tmp_path, settings) as broker:
        said = finish(
            ["java", "-cp", f"{jar}:{classes}:{need_kafka()}", "Newest", broker.bootstrap], limit=120
        )
    lines = [line for line in said.splitlines() if line]
    assert lines == [
        "committed classic 7",
        "committed consumer 7",
        "pending -1",
        "quorum 1 1",
        "moved",
        "refused The group id does not exist.",
    ]
    assert asked == NEWEST

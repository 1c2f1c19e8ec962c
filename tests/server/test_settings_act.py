"""Settings that a broker used to accept and ignore, each shown to act on a real broker."""

import threading

import pytest

from headrace.link.errors import BrokerUnavailable
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.definition import UpdateMode, format_value
from headrace.server.config.inert import INERT, INERT_WHILE_RUNNING, REFUSED
from headrace.server.config.topic import TOPIC_SYNONYMS
from headrace.server.log.partition import PartitionLog
from headrace.testing import cluster as testing
from headrace.testing.wire import WireClient, batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.server.requests import produce_request, produced
from tests.waiting import until

PATIENCE = 60
BROKER, GROUP, SET = 4, 32, 0


def alter(broker, kind, name, settings):
    """Through the wire, all at once; the response for the resource."""
    configs = [AlterableConfig(setting, SET, str(value)) for setting, value in settings.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, configs)])
    with WireClient(broker.bootstrap, PATIENCE) as client:
        (response,) = client.call(request, 1).responses
    return response


BEHIND_TOPICS = {synonym.name for synonyms in TOPIC_SYNONYMS.values() for synonym in synonyms}
LIVE = sorted(
    name
    for name, setting in BROKER_SETTINGS.items()
    if setting.update is not UpdateMode.READ_ONLY
    and name not in {*INERT, *REFUSED, *INERT_WHILE_RUNNING, *BEHIND_TOPICS}
    and not name.startswith(("ssl.", "sasl.", "errors.deadletterqueue."))
)
"""Settings that can be changed on a running broker and act, and are not defaults of topics; those of TLS and SASL are read where a
listener has it (tests/server/security), those of dead letters when there is one (tests/server/share)."""


def test_every_setting_that_changes_while_running_is_read_again_when_one_does(make_broker, monkeypatch):
    read = set()
    for accessor in ("value", "integer", "number", "boolean", "string", "list"):
        original = getattr(BrokerConfig, accessor)

        def recording(self, name, original=original):
            if self.dynamic_default:
                read.add(name)
            return original(self, name)

        monkeypatch.setattr(BrokerConfig, accessor, recording)
    broker = make_broker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        }
    )
    assert alter(broker, BROKER, "", {"log.retention.ms": 9}).error_code == 0
    until(lambda: set(LIVE) <= read)


def test_values_changed_while_running_reach_the_engines(make_broker):
    broker = make_broker({"num.io.threads": 1})
    changed = {
        "log.cleaner.backoff.ms": 17,
        "log.cleaner.io.buffer.load.factor": 0.5,
        "producer.id.expiration.ms": 18,
        "transaction.partition.verification.enable": "false",
        "max.connections": 19,
        "num.io.threads": 3,
    }
    assert alter(broker, BROKER, "1", changed).error_code == 0

    async def seen(node):
        settings, environment = node.cleaner.settings, node.logs.environment
        return {
            "log.cleaner.backoff.ms": settings.log_cleaner_backoff_ms,
            "log.cleaner.io.buffer.load.factor": settings.log_cleaner_io_buffer_load_factor,
            "producer.id.expiration.ms": environment.producer_id_expiration_ms,
            "transaction.partition.verification.enable": format_value(environment.transaction_verification),
            "max.connections": node.admission.limits.max_connections,
            "num.io.threads": node.engines.disk.count,
        }

    until(lambda: broker.run(seen) == changed)
    meeting = threading.Barrier(3)

    async def submit(node):
        return [node.engines.disk.submit(meeting.wait, PATIENCE) for _ in range(3)]

    for job in broker.run(submit):
        job.result(PATIENCE)  # Three threads at once, or they would not meet.


def test_values_changed_while_running_hold_after_a_restart(make_broker):
    broker = make_broker()
    assert alter(broker, BROKER, "1", {"num.io.threads": 5, "max.connections": 77}).error_code == 0
    broker.stop()
    broker.start()

    async def seen(node):
        return node.engines.disk.count, node.admission.limits.max_connections

    assert broker.run(seen) == (5, 77)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"consumer.session.timeout.ms": 44_999}, "group.consumer.min.session.timeout.ms (45000)"),
        ({"consumer.session.timeout.ms": 60_001}, "group.consumer.max.session.timeout.ms (60000)"),
        ({"consumer.heartbeat.interval.ms": 4_999}, "group.consumer.min.heartbeat.interval.ms (5000)"),
        ({"consumer.heartbeat.interval.ms": 15_001}, "group.consumer.max.heartbeat.interval.ms (15000)"),
        ({"colour": "red"}, "Unknown group config name: colour"),
    ],
)
def test_a_groups_times_stay_within_the_brokers_bounds(broker, settings, sentence):
    response = alter(broker, GROUP, "g", settings)
    assert response.error_code == ErrorCode.INVALID_CONFIG
    assert sentence in response.error_message


def test_wider_bounds_let_a_group_have_its_times(make_broker):
    broker = make_broker({"group.consumer.min.heartbeat.interval.ms": 100})
    assert alter(broker, GROUP, "g", {"consumer.heartbeat.interval.ms": 100}).error_code == 0


def test_without_the_consumer_protocol_its_requests_are_not_supported(make_broker):
    broker = make_broker({"group.coordinator.rebalance.protocols": "classic"})
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"]
    )
    with WireClient(broker.bootstrap, PATIENCE) as client:
        assert client.call(heartbeat, 1).error_code == ErrorCode.UNSUPPORTED_VERSION
        (group,) = client.call(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
        assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


SILENT = {"request.timeout.ms": 200, "controller.socket.timeout.ms": 300}


@pytest.mark.parametrize(("ask", "seconds"), [("peers", "0.2"), ("controller", "0.3")])
def test_a_broker_that_gets_no_answer_gives_up_in_the_time_set(make_broker, ask, seconds):
    broker = make_broker(SILENT)
    broker.faults.delay("ApiVersions", 3600, brokers=True)

    async def call(node):
        asked = node.peers.call if ask == "peers" else node.cluster._call_broker
        with pytest.raises(BrokerUnavailable, match=f"did not answer within {seconds} s"):
            await asked(1, ApiVersionsRequest(), 0)

    broker.run(call)


def test_a_follower_that_gets_no_answer_gives_up_in_the_time_set(tmp_path, caplog):
    settings = {"replica.socket.timeout.ms": 700, "replica.fetch.wait.max.ms": 50}
    with (
        caplog.at_level("INFO", "headrace.server.replica"),
        testing.threads(tmp_path, 2, settings) as cluster,
    ):
        cluster.create_topic(partitions=2)
        for broker in cluster:
            broker.faults.delay("Fetch", 3600, brokers=True)
        until(lambda: "did not answer within 0.7 s" in caplog.text)


def test_segments_may_be_smaller_than_the_lower_bound_for_tests(broker):
    topic = broker.create_topic(config={"internal.segment.bytes": 300})
    with WireClient(broker.bootstrap, PATIENCE) as client:
        for _ in range(4):
            assert produced(client, produce_request(topic, batch(b"x" * 200), acks=1)) is ErrorCode.NONE
    assert len(list((broker.data / f"{topic}-0").glob("*.log"))) == 4


@pytest.mark.parametrize("threads", [1, 2])
def test_logs_are_recovered_by_as_many_threads_as_are_set(make_broker, monkeypatch, threads):
    broker = make_broker({"num.recovery.threads.per.data.dir": threads})
    broker.create_topic(partitions=4)
    broker.kill()
    used, load, meeting = set(), PartitionLog.load, threading.Barrier(threads)

    def recorded(self):
        name = threading.current_thread().name
        if name.startswith("recovery") and name not in used:
            used.add(name)
            meeting.wait(PATIENCE)
        return load(self)

    monkeypatch.setattr(PartitionLog, "load", recorded)
    broker.start()
    assert len(used) == threads


def test_the_first_checkpoint_comes_soon_after_the_start(make_broker):
    broker = make_broker(
        {"log.initial.task.delay.ms": 50, "log.flush.offset.checkpoint.interval.ms": 3_600_000}
    )
    topic = broker.create_topic()
    broker.stop()
    file = broker.data / "recovery-point-offset-checkpoint"
    file.unlink()
    broker.start()
    until(lambda: file.exists() and topic in file.read_text())

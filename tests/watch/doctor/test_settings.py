"""Settings that fight each other, do not act, or keep a broker from starting: in a file, on brokers, topics and clients."""

import pytest

from headrace.backlog.register import Register
from headrace.cli.cluster.settings_file import read
from headrace.client import Admin, DropWhere, Producer, Retry, Runner
from headrace.client.lag_history import LagHistory
from headrace.server.config.inert import INERT
from headrace.watch.alerts.store import Store
from headrace.watch.doctor import conflicts
from tests.client.running import running
from tests.waiting import until
from tests.watch.doctor.looking import findings

HOUR = 3_600_000


def rules(found):
    return {each.rule for each in found}


@pytest.mark.parametrize(
    ("topic", "broker", "rule"),
    [
        ({"retention.ms": HOUR, "segment.ms": 24 * HOUR}, {}, "retention.ms, segment.ms"),
        ({"retention.bytes": 1 << 20, "segment.bytes": 1 << 30}, {}, "retention.bytes, segment.bytes"),
        (
            {"cleanup.policy": "compact,delete", "retention.ms": HOUR, "min.compaction.lag.ms": HOUR},
            {},
            "retention.ms, min.compaction.lag.ms",
        ),
        ({"retention.ms": 1000}, {}, "retention.ms, log.retention.check.interval.ms"),
        (
            {"cleanup.policy": "compact"},
            {"log.cleaner.enable": "false"},
            "cleanup.policy, log.cleaner.enable",
        ),
        (
            {"cleanup.policy": "compact", "min.compaction.lag.ms": 10, "max.compaction.lag.ms": 5},
            {},
            "min.compaction.lag.ms, max.compaction.lag.ms",
        ),
        (
            {"max.message.bytes": 20_000_000},
            {"socket.request.max.bytes": 10_000_000},
            "max.message.bytes, socket.request.max.bytes",
        ),
        (
            {"max.message.bytes": 20_000_000},
            {"fetch.max.bytes": 10_000_000},
            "max.message.bytes, fetch.max.bytes",
        ),
        (
            {"max.message.bytes": 20_000_000},
            {"replica.fetch.max.bytes": 1 << 20},
            "max.message.bytes, replica.fetch.max.bytes",
        ),
        (
            {"max.message.bytes": 20_000_000},
            {"replica.fetch.response.max.bytes": 1 << 20},
            "max.message.bytes, replica.fetch.response.max.bytes",
        ),
        ({"max.message.bytes": 2000, "segment.bytes": 1000}, {}, "max.message.bytes, segment.bytes"),
        ({"flush.ms": 1000}, {}, "flush.ms, log.flush.scheduler.interval.ms"),
        (
            {"unclean.leader.election.enable": "true", "min.insync.replicas": 2},
            {},
            "unclean.leader.election.enable, min.insync.replicas",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_rule_about_a_topic_fires(topic, broker, rule):
    written = {name: str(value) for name, value in topic.items()}
    assert rule in rules(conflicts.in_topic(written, {k: str(v) for k, v in broker.items()}))
    assert rules(conflicts.in_topic({}, {})) == set()


@pytest.mark.parametrize(
    ("broker", "live", "rule"),
    [
        ({"min.insync.replicas": 2}, 3, "min.insync.replicas, default.replication.factor"),
        ({}, 3, "auto.create.topics.enable, default.replication.factor"),
        (
            {"offsets.topic.replication.factor": 3},
            2,
            "offsets.topic.replication.factor, the number of brokers",
        ),
        (
            {"transaction.state.log.replication.factor": 3},
            1,
            "transaction.state.log.replication.factor, the number of brokers",
        ),
        ({"default.replication.factor": 3}, 2, "default.replication.factor, the number of brokers"),
        (
            {"transaction.state.log.min.isr": 2, "transaction.state.log.replication.factor": 1},
            1,
            "transaction.state.log.min.isr, transaction.state.log.replication.factor",
        ),
        (
            {"message.max.bytes": 2000, "socket.request.max.bytes": 1000},
            1,
            "message.max.bytes, socket.request.max.bytes",
        ),
        (
            {"group.max.session.timeout.ms": 30_000},
            1,
            "session.timeout.ms, group.min.session.timeout.ms, group.max.session.timeout.ms",
        ),
        ({"transaction.max.timeout.ms": 30_000}, 1, "transaction.timeout.ms, transaction.max.timeout.ms"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_rule_about_brokers_fires(broker, live, rule):
    written = {name: str(value) for name, value in broker.items()}
    assert rule in rules(conflicts.in_brokers(written, live))
    assert rules(conflicts.in_brokers({"default.replication.factor": "1"}, 1)) == set()


def test_what_stands_alone_or_is_there_already_needs_no_more_brokers():
    headrace = {"transaction.state.log.replication.factor": "3", "headrace.host": ""}
    assert rules(conflicts.in_brokers(headrace, 1)) == set()
    there = frozenset({"__transaction_state"})
    apache = {"transaction.state.log.replication.factor": "3"}
    assert rules(conflicts.in_brokers(apache, 1, there)) == set()


def test_clients_quotas_and_places_of_groups_have_rules_too():
    broker = {
        "group.min.session.timeout.ms": "6000",
        "group.max.session.timeout.ms": "300000",
        "message.max.bytes": "1000000",
        "transaction.max.timeout.ms": "60000",
    }
    client = {
        "session.timeout.ms": "1000",
        "heartbeat.interval.ms": "900",
        "max.request.size": "5000000",
        "transaction.timeout.ms": "90000",
    }
    assert len(rules(conflicts.in_client(client, broker))) == 4
    assert rules(conflicts.in_client({"session.timeout.ms": "45000"}, broker)) == set()
    assert len(rules(conflicts.in_quotas({"producer_byte_rate": 1024.0}, broker))) == 1
    assert rules(conflicts.in_quotas({"producer_byte_rate": 1e6}, broker)) == set()
    assert rules(conflicts.with_offsets({"retention.ms": "-1"}, {})) == {
        "retention.ms, offsets.retention.minutes"
    }
    assert rules(conflicts.with_offsets({"retention.ms": "604800000"}, {})) == set()


def test_a_running_brokers_topics_with_the_same_conflict_become_one_sentence(make_broker):
    broker = make_broker({"group.max.session.timeout.ms": "30000"})
    names = sorted(broker.create_topic(config={"retention.bytes": 1000}) for _ in range(4))
    found = findings("conflicting-settings", broker.bootstrap, client={"heartbeat.interval.ms": "20000"})
    [topics] = [each for each in found if "retention.bytes" in each[1]]
    assert topics[0] == "warning"
    assert set(topics[2]) == {f"topic {name}" for name in names}
    assert "(4 in all: " in topics[1]
    assert any("cannot join a group" in each[1] for each in found)
    assert any("clients of broker 1: heartbeat.interval.ms=20000" in each[1] for each in found)


def test_a_broker_as_it_comes_has_no_conflicts(make_broker):
    broker = make_broker()
    broker.create_topic()
    assert findings("conflicting-settings", broker.bootstrap) == []
    assert findings("inert-settings", broker.bootstrap, inert_in_brokers=INERT) == []


def test_topics_that_headrace_makes_for_itself_have_no_conflicts(make_broker):
    broker = make_broker()
    topic = broker.create_topic()
    with Producer(broker.bootstrap) as producer:
        producer.send_and_wait(topic, "a record that cannot be handled", partition=0)
    rules = [DropWhere(predicate=lambda record: False)]
    runner = Runner(
        _fail,
        broker.bootstrap,
        topics=topic,
        group_id="shop",
        degrade=rules,
        retry=Retry(attempts=1),
        auto_offset_reset="earliest",
    )
    with running(runner), Admin(broker.bootstrap) as admin:
        until(lambda: f"{topic}.dlq" in admin.topics(), "the dead letter")
    settings = {"bootstrap.servers": broker.bootstrap}
    with Admin(broker.bootstrap) as admin:
        LagHistory(settings).ensure(admin)
        Store(settings).ensure(admin)
        with Register(settings, admin).writing("shop", topic):
            own = set(admin.topics())
    assert {"shop.degraded", "shop.replay", f"{topic}.dlq", "__headrace_degrade", "__headrace_lag"} <= own
    assert findings("conflicting-settings", broker.bootstrap) == []


def _fail(record):
    raise ValueError("never")


def test_quotas_that_one_batch_uses_up_are_found(make_broker):
    from headrace.client.administration import quotas
    from tests.watch.doctor.looking import scene_of

    broker = make_broker()
    scene = scene_of(broker.bootstrap)
    quotas.alter(scene.session, (("user", "ada"),), {"producer_byte_rate": 100.0})
    scene.watching.close()
    [(severity, sentence, _)] = findings("conflicting-settings", broker.bootstrap)
    assert severity == "note"
    assert sentence.startswith("In quota of user ada: producer_byte_rate=100 is used up for ")


def test_a_file_is_read_as_a_broker_reads_it(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(
        "listeners=PLAINTEXT://0.0.0.0:9092\nnum.network.threads=8\nlog.retention.hour=3\nport=9092\n"
        "log.retention.hours=1\nlog.roll.hours=48\nadvertised.listeners=PLAINTEXT://localhost:9092\n"
    )
    file = read(path)
    found = findings("settings-file", file=file)
    assert [(severity, subjects) for severity, _, subjects in found] == [("warning", ()), ("note", ())]
    assert f"{path}:3: Unknown setting log.retention.hour. Did you mean log.retention.hours?" in found[0][1]
    assert "port was removed in Kafka 3.0: set `listeners`" in found[1][1]
    [(severity, sentence, _)] = findings("inert-settings", file=file)
    assert (severity, sentence.startswith("num.network.threads, set in ")) == ("note", True)
    assert "one event loop serves all connections" in sentence
    [(severity, sentence, _)] = findings("open-listeners", file=file)
    assert severity == "warning"
    [(_, sentence, _)] = findings("advertised-loopback", file=file)
    assert "advertises PLAINTEXT://localhost:9092" in sentence
    fights = [sentence for _, sentence, _ in findings("conflicting-settings", file=file)]
    assert any("retention.ms is 1 h but a segment may take 2 d to fill" in each for each in fights)


def test_a_file_that_a_broker_refuses_is_an_error(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=many\n")
    [(severity, sentence, _)] = findings("settings-file", file=read(path))
    assert severity == "error"
    assert sentence.startswith(f"A broker would not start with {path}: {path}:1: ")
    assert findings("conflicting-settings", file=read(path)) == []


def test_settings_that_do_not_act_are_found_on_running_brokers_too(make_broker):
    broker = make_broker({"num.network.threads": "8"})
    [(severity, sentence, subjects)] = findings("inert-settings", broker.bootstrap, inert_in_brokers=INERT)
    assert (severity, subjects) == ("note", ("broker 1",))
    assert sentence.startswith("num.network.threads, set in broker 1, has no effect: ")

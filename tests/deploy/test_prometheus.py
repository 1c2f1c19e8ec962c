"""deploy/prometheus and deploy/grafana with a real Prometheus and a real cluster: every panel has data, alerts fire and resolve."""

import json
import subprocess
import threading

import pytest
import yaml
from confluent_kafka import Consumer, Producer

from headrace.client import Admin, TopicPartition
from headrace.link.addresses import join_address
from headrace.testing import cluster as testing
from tests.deploy.prometheus import DEPLOY, PATIENCE, Prometheus
from tests.server.metrics.scraping import METRICS
from tests.waiting import until


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_and_the_rules_are_valid(tools):
    run("promtool", "check", "config", "prometheus.yml", cwd=DEPLOY / "prometheus")


def test_alerts_fire_and_resolve_as_their_rules_say(tools):
    run("promtool", "test", "rules", "headrace-alerts.test.yml", cwd=DEPLOY / "prometheus")


def test_no_alert_goes_without_a_test_that_it_fires_and_resolves():
    rules = yaml.safe_load((DEPLOY / "prometheus/headrace-alerts.yml").read_text())
    tests = yaml.safe_load((DEPLOY / "prometheus/headrace-alerts.test.yml").read_text())
    fires, resolved = set(), set()
    for each in (each for test in tests["tests"] for each in test["alert_rule_test"]):
        if "exp_alerts" in each:
            fires.add(each["alertname"])
        elif each["alertname"] in fires:
            resolved.add(each["alertname"])
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    assert alerts == fires == resolved


def test_the_dashboards_are_those_of_their_generator(monkeypatch, tmp_path):
    from tools import generate_dashboards

    monkeypatch.setattr(generate_dashboards, "FOLDER", tmp_path)
    generate_dashboards.main()
    for made in tmp_path.iterdir():
        assert made.read_text() == (DEPLOY / "grafana" / made.name).read_text(), (
            "run tools/generate_dashboards.py"
        )


class Work:
    """Producers and a group of consumers that keep a cluster busy until it is closed."""

    def __init__(self, bootstrap, topic):
        self._over = threading.Event()
        self._bootstrap, self._topic = bootstrap, topic
        self._threads = [threading.Thread(target=each) for each in (self._produce, self._consume)]
        for each in self._threads:
            each.start()

    def _produce(self):
        producer = Producer({"bootstrap.servers": self._bootstrap, "log_level": 0})
        while not self._over.wait(0.05):
            try:
                producer.produce(self._topic, b"x" * 100)
            except BufferError:
                pass  # A broker is down, and its partitions wait.
            producer.poll(0)
        producer.purge()

    def _consume(self):
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "busy", "log_level": 0}
        consumer = Consumer({**settings, "auto.commit.interval.ms": 500, "auto.offset.reset": "earliest"})
        consumer.subscribe([self._topic])
        while not self._over.is_set():
            consumer.consume(100, 0.2)
        consumer.close()

    def close(self):
        self._over.set()
        for each in self._threads:
            each.join(60)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    settings = {**METRICS, "offsets.topic.num.partitions": 2, "offsets.topic.replication.factor": 2}
    with testing.threads(tmp_path_factory.mktemp("brokers"), 2, settings) as cluster:
        for broker in cluster:
            # The same port after a restart, as a real broker has.
            broker.settings["headrace.metrics.listener"] = join_address(*broker.node.metrics_address)
        yield cluster


@pytest.fixture(scope="module")
def work(cluster):
    topic = cluster.create_topic("busy", 2)
    cluster.create_topic("alone", 2, replication_factor=1)
    work = Work(cluster.bootstrap, topic)
    yield work
    work.close()


@pytest.fixture(scope="module")
def prometheus(tools, cluster, work, tmp_path_factory):
    targets = [each.settings["headrace.metrics.listener"] for each in cluster]
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), targets)
    yield server
    server.stop()


def panels():
    for file in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{file.stem}: {panel['title']}", target["expr"]


def test_every_panel_shows_something(prometheus):
    until(prometheus.answers, "Prometheus", PATIENCE)
    empty = dict.fromkeys(panels())

    def look():
        for each in list(empty):
            expression = each[1].replace("$job", ".+").replace("$__rate_interval", "10s")
            if prometheus.query(expression):
                del empty[each]
        return not empty

    try:
        until(look, "data for every panel", PATIENCE)
    except AssertionError:
        pytest.fail(f"no data: {sorted(name for name, _ in empty)}")


def test_alerts_fire_while_a_broker_is_down_and_resolve_when_it_is_back(prometheus, cluster):
    expected = {"HeadraceBrokerDown", "HeadraceUnderReplicated", "HeadraceOfflinePartitions"}
    until(prometheus.answers, "Prometheus", PATIENCE)
    until(lambda: not expected & prometheus.firing(), "a healthy cluster", PATIENCE)
    cluster[2].kill()
    seen = set()
    until(lambda: (seen.update(prometheus.firing()), expected <= seen)[1], f"{expected}", PATIENCE)
    cluster[2].start()
    until(lambda: not expected & prometheus.firing(), "alerts that resolve", PATIENCE)


def test_a_group_that_falls_behind_fires_until_it_has_caught_up(prometheus, cluster):
    until(prometheus.answers, "Prometheus", PATIENCE)
    with Admin(cluster.bootstrap) as admin:
        admin.set_group_offsets("behind", {TopicPartition("busy", each): 0 for each in range(2)})

        def lagging():
            alerts = prometheus.ask("alerts")["alerts"]
            return [
                each
                for each in alerts
                if each["labels"].get("consumergroup") == "behind" and each["state"] == "firing"
            ]

        def growing():
            return [each for each in lagging() if each["labels"]["alertname"] == "HeadraceLagGrowing"]

        until(growing, "HeadraceLagGrowing", PATIENCE)
        admin.set_group_offsets("behind", {TopicPartition("busy", each): 1 << 40 for each in range(2)})
        until(lambda: not lagging(), "an alert that resolves", PATIENCE)

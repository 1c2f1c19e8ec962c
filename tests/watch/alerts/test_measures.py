"""What each kind of rule finds in real clusters that are broken on purpose."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.client import Admin, Producer
from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import threads
from headrace.watch.alerts.conditions import DiskFilling
from headrace.watch.alerts.file import read
from headrace.watch.alerts.measures.disks import Disks
from headrace.watch.alerts.observer import Look, Observer
from headrace.watch.alerts.states import Finding, Seen
from tests.certificates import Certificates
from tests.waiting import until

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}


@contextmanager
def observing(config: str | dict[str, object], *rules: str, window: str = "0.5s") -> Iterator[Observer]:
    text = f'[alerts]\ninterval = "1s"\nwindow = "{window}"\n' + "".join(
        f'[[rule]]\nname = "r{number}"\n{rule}\n' for number, rule in enumerate(rules)
    )
    given = {"bootstrap.servers": config} if isinstance(config, str) else config
    observer = Observer(read(text, "alerts.toml"), given)
    try:
        yield observer
    finally:
        observer.close()


def seen(look: Look) -> dict[str, list[tuple[str, dict[str, str]]]]:
    return {
        rule: [(each.seen.value, dict(each.labels)) for each in findings]
        for rule, findings in look.findings.items()
    }


def eventually(observer: Observer, wanted: Callable[[Look], bool], what: str) -> Look:
    looks: list[Look] = []

    def look() -> bool:
        looks[:] = [observer.look()]
        return wanted(looks[0])

    until(look, what)
    return looks[0]


def test_replicas_brokers_and_partitions_that_are_missing(tmp_path: Path) -> None:
    kinds = ("under-replicated", "under-min-isr", "offline-partitions", "broker-missing", "no-controller")
    with threads(tmp_path, 3, {**SETTINGS, "replica.lag.time.max.ms": "2000"}) as cluster:
        cluster.create_topic("orders", 1, 3, {"min.insync.replicas": 3})
        cluster.create_topic("alone", 3, 1)
        rules = [f'kind = "{kind}"' for kind in kinds]
        rules[2] += '\ntopics = ["alone"]'
        rules[3] += "\nexpected = [1, 2, 3, 9]"
        with observing(cluster.bootstrap, *rules) as observer:
            look = eventually(observer, lambda look: look.away is None and not look.missing, "a whole look")
            found = seen(look)
            assert [found[f"r{n}"] for n in (0, 1, 2, 4)] == [[("clear", {})]] * 4
            assert found["r3"] == [
                ("clear", {"broker": "1"}),
                ("clear", {"broker": "2"}),
                ("clear", {"broker": "3"}),
                ("active", {"broker": "9"}),
            ]
            cluster[3].kill()
            active = [("active", {})]
            look = eventually(
                observer,
                lambda look: (
                    [seen(look).get(f"r{n}") for n in range(3)] == [active] * 3
                    and ("active", {"broker": "3"}) in seen(look)["r3"]
                ),
                "what broker 3 took with it",
            )
            assert "no leader" in look.findings["r2"][0].summary
            assert look.findings["r2"][0].summary.startswith("1 partition has no leader")
            cluster[3].start()
            eventually(
                observer,
                lambda look: [seen(look).get(f"r{n}") for n in range(3)] == [[("clear", {})]] * 3,
                "the repair",
            )


def test_dead_letters_are_counted_by_topic_within_a_time(bootstrap: str) -> None:
    old = int((time.time() - 7200) * 1000)
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        for topic in ("a.dlq", "b.dlq", "test.dlq", "c"):
            admin.create_topic(topic, partitions=2)
            for _ in range(3):
                producer.send_and_wait(topic, "x", timestamp=old if topic == "b.dlq" else None)
    rule = 'kind = "dead-letters"\ntopics = ["*.dlq", "!test*"]\nwithin = "1h"'
    with observing(bootstrap, rule, rule + "\nabove = 3") as observer:
        look = observer.look()
        assert seen(look)["r0"] == [("active", {"topic": "a.dlq"}), ("clear", {"topic": "b.dlq"})]
        assert seen(look)["r1"] == [("clear", {"topic": "a.dlq"}), ("clear", {"topic": "b.dlq"})]
        assert look.findings["r0"][0].value == 3


def test_what_retention_is_about_to_delete_is_forecast(bootstrap: str) -> None:
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        admin.create_topic("short", partitions=1, config={"retention.ms": "3600000"})
        for _ in range(3):
            producer.send_and_wait("short", "x")
        [partition] = admin.partitions_of("short")
        admin.set_group_offsets("slow", {partition: 1})
        rules = [f'kind = "lag-forecast"\ngroups = ["slow"]\nwithin = "{within}"' for within in ("2h", "1m")]
        with observing(bootstrap, *rules) as observer:
            look = eventually(observer, lambda look: seen(look)["r0"][0][0] == "active", "the forecast")
            summary = look.findings["r0"][0].summary
            assert re.search(r"may lose unread records to retention in (59 min|1 h)", summary)
            eventually(observer, lambda look: seen(look)["r1"][0][0] == "clear", "that there is time")


def test_a_group_that_vanishes_is_gone(bootstrap: str) -> None:
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        admin.create_topic("left", partitions=1)
        producer.send_and_wait("left", "x")
        [partition] = admin.partitions_of("left")
        admin.set_group_offsets("leaver", {partition: 1})
        with observing(bootstrap, 'kind = "lag-state"\ngroups = ["leaver"]') as observer:
            assert seen(observer.look())["r0"] == [("clear", {"group": "leaver"})]
            admin.delete_group("leaver")
            assert seen(observer.look())["r0"] == [("active", {"group": "leaver"})]


def test_a_cluster_that_does_not_answer_is_away_and_says_nothing_else(tmp_path: Path) -> None:
    with (
        BrokerThread(tmp_path / "broker", SETTINGS) as broker,
        observing(broker.bootstrap, 'kind = "under-replicated"') as observer,
    ):
        assert observer.look().away is None
        broker.kill()
        look = observer.look()
        assert look.away
        assert look.findings == {}
        broker.start()
        eventually(observer, lambda look: look.away is None, "its return")


def test_the_end_of_a_certificate_is_seen_before_clients_see_it(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    soon = datetime.now(UTC) + timedelta(days=4, hours=12)
    certificates.broker = certificates.issue("soon", "localhost", not_after=soon)
    with BrokerThread(tmp_path / "broker", certificates.listener()) as broker:
        address = f"localhost:{broker.port}"
        settings: dict[str, object] = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.truststore.location": str(certificates.ca),
        }
        rules = [f'kind = "certificate-expiry"\nwithin = "{within}"' for within in ("14d", "1d")]
        with observing(settings, *rules) as observer:
            look = observer.look()
            assert seen(look)["r0"] == [("active", {"listener": address})]
            assert seen(look)["r1"] == [("clear", {"listener": address})]
            assert look.findings["r0"][0].summary.startswith(f"the certificate of {address} expires in 4 d")


def test_a_listener_can_be_named_and_one_that_shows_no_certificate_is_missing_data(
    bootstrap: str, tmp_path: Path
) -> None:
    expired = Certificates(tmp_path / "certificates")
    long_ago = datetime.now(UTC) - timedelta(days=1)
    expired.broker = expired.issue("old", "localhost", not_after=long_ago)
    with BrokerThread(tmp_path / "broker", expired.listener()) as broker:
        address = f"localhost:{broker.port}"
        rule = f'kind = "certificate-expiry"\nlisteners = ["{address}", "{bootstrap}"]'
        with observing(bootstrap, rule) as observer:
            look = observer.look()
        assert seen(look)["r0"] == [
            ("active", {"listener": address}),
            ("missing", {"listener": bootstrap}),
        ]
        assert "expired on" in look.findings["r0"][0].summary


class Filling:
    """Free bytes of one disk over time, judged as a rule would."""

    def __init__(self, **settings: float) -> None:
        self.condition = DiskFilling(**settings)
        self.disks = Disks()

    def judge(self, at: float, usable: int, total: int = 1000) -> Finding:
        return self.disks._judge(self.condition, (1, "/data"), at, usable, total)


def test_a_disk_that_fills_is_forecast_from_its_pace() -> None:
    filling = Filling(within=3600.0, window=600.0, min_free=0.05)
    found = [filling.judge(at, 900 - at // 10) for at in range(0, 900, 60)]
    assert [each.seen for each in found[:5]] == [Seen.MISSING] * 5, "half a window is needed"
    assert found[-1].seen is Seen.CLEAR
    assert found[-1].value == pytest.approx((900 - 84) * 10, rel=0.05)
    fast = Filling(within=3600.0, window=600.0, min_free=0.05)
    assert [fast.judge(at, 900 - at // 2) for at in range(0, 900, 60)][-1].seen is Seen.ACTIVE


def test_a_disk_that_empties_or_stands_still_is_well() -> None:
    filling = Filling(within=1e9, window=600.0)
    assert [filling.judge(at, 500) for at in range(0, 900, 60)][-1].seen is Seen.CLEAR
    assert [filling.judge(at, at) for at in range(900, 2400, 60)][-1].seen is Seen.CLEAR


def test_a_disk_that_is_nearly_full_needs_no_forecast() -> None:
    found = Filling(min_free=0.1).judge(0, 99)
    assert found.seen is Seen.ACTIVE
    assert found.summary == "/data on broker 1 has 9.9% free (99 B of 1000 B), less than 10%"


def test_the_disk_of_a_real_broker_is_read(bootstrap: str) -> None:
    with observing(bootstrap, 'kind = "disk-filling"\nmin_free = "99.999%"') as observer:
        [finding] = observer.look().findings["r0"]
    assert finding.seen is Seen.ACTIVE
    assert dict(finding.labels)["broker"] == "1"

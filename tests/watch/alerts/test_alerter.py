"""The whole alerter against real brokers: it fires once, repeats, resolves, keeps quiet when silenced, and survives what dies."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.client import Admin, Producer
from headrace.testing.broker import BrokerThread
from headrace.watch.alerts.alerter import Alerter, Role
from headrace.watch.alerts.history import Happened
from headrace.watch.alerts.silences import Silence
from headrace.watch.alerts.states import Phase
from headrace.watch.alerts.store import Store
from tests.waiting import until
from tests.watch.alerts.conftest import Inbox, Instance, rules

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
DEAD_LETTERS = """
[[rule]]
name = "letters"
kind = "dead-letters"
within = "1h"
severity = "critical"
labels = { team = "orders" }
runbook = "https://example.com/runbook"
"""

Run = Callable[..., Alerter]
Start = Callable[..., Instance]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path / "broker", SETTINGS) as running:
        yield running


def dead_letter(bootstrap: str, topic: str = "orders.dlq") -> None:
    with Producer(bootstrap) as producer:
        producer.send_and_wait(topic, "a letter")


def forget_letters(bootstrap: str, topic: str = "orders.dlq") -> None:
    with Admin(bootstrap) as admin:
        admin.delete_topic(topic)


def looked_again(alerter: Alerter, times: int = 3) -> None:
    """Some looks later: what must not happen had the time to."""
    looks: list[Any] = []
    take = alerter._take
    alerter._take = lambda look: (looks.append(look), take(look))[1]  # type: ignore[method-assign, func-returns-value]
    until(lambda: len(looks) >= times, "some looks")


def fires(alerter: Alerter) -> bool:
    return any(each.phase is Phase.FIRING for each in list(alerter._register.alerts.values()))


def history(bootstrap: str) -> list[tuple[str, str]]:
    with Admin(bootstrap) as admin:
        return [
            (event.what.value, event.rule) for event in Store({"bootstrap.servers": bootstrap}).history(admin)
        ]


def silence(bootstrap: str, rule: str, seconds: float) -> Silence:
    made = Silence.make(rule, {}, time.time() + seconds, "ann", "known", time.time())
    store = Store({"bootstrap.servers": bootstrap})
    with Admin(bootstrap) as admin, Producer[bytes, bytes](bootstrap) as producer:
        store.ensure(admin)
        store.put_silence(producer, made)
    return made


def test_it_fires_once_and_resolves_once(broker: BrokerThread, inbox: Inbox, alerter: Run) -> None:
    running = alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS))
    dead_letter(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing"], "the notice")
    looked_again(running)
    assert inbox.of("letters") == ["firing"]
    notice = inbox.received[0].document
    assert (notice["severity"], notice["cluster"], notice["labels"]) == (
        "critical",
        "test",
        {"team": "orders", "topic": "orders.dlq"},
    )
    assert notice["summary"] == "1 dead letter arrived in orders.dlq within 1 h"
    assert notice["runbook"] == "https://example.com/runbook"
    forget_letters(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing", "resolved"], "the end")
    looked_again(running)
    assert inbox.of("letters") == ["firing", "resolved"]
    ended = inbox.received[1].document
    assert ended["id"] == notice["id"]
    assert ended["ended"]
    assert "no longer there" in ended["summary"]
    until(lambda: history(broker.bootstrap)[-1] == ("delivered", "letters"), "the history")
    assert [what for what, _ in history(broker.bootstrap)] == [
        Happened.TOOK_OVER,
        Happened.FIRED,
        Happened.DELIVERED,
        Happened.RESOLVED,
        Happened.DELIVERED,
    ]
    with Admin(broker.bootstrap) as admin:
        assert Store({"bootstrap.servers": broker.bootstrap}).read(admin).alerts == {}


def test_it_repeats_at_the_interval_that_was_asked_for(
    broker: BrokerThread, inbox: Inbox, alerter: Run
) -> None:
    dead_letter(broker.bootstrap)
    alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS + 'repeat = "0.5s"\n'))
    until(lambda: len(inbox.of("letters")) >= 3, "repetitions")
    assert set(inbox.of("letters")) == {"firing"}
    assert len({each.document["id"] for each in inbox.received}) == 1


def test_a_restart_neither_fires_again_nor_forgets_to_resolve(
    broker: BrokerThread, inbox: Inbox, alerter: Run
) -> None:
    first = alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS))
    dead_letter(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing"], "the notice")
    first.end()  # type: ignore[attr-defined]
    second = alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS))
    until(lambda: second.role is Role.ACTING, "the second instance")
    looked_again(second)
    assert inbox.of("letters") == ["firing"]
    forget_letters(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing", "resolved"], "the end")


def test_a_silence_holds_over_restarts_and_its_end_is_heard(
    broker: BrokerThread, inbox: Inbox, alerter: Run
) -> None:
    made = silence(broker.bootstrap, "let*", 3600)
    dead_letter(broker.bootstrap)
    text = rules(inbox, DEAD_LETTERS)
    for _ in range(2):
        running = alerter(broker.bootstrap, text)
        until(partial(fires, running), "it fires")
        looked_again(running)
        running.end()  # type: ignore[attr-defined]
    assert inbox.received == []
    running = alerter(broker.bootstrap, text)
    store = Store({"bootstrap.servers": broker.bootstrap})
    with Producer[bytes, bytes](broker.bootstrap) as producer:
        store.remove_silence(producer, made.id)
    until(lambda: inbox.of("letters") == ["firing"], "the notice after the silence")


def test_a_silence_ends_the_attempts_to_deliver(broker: BrokerThread, inbox: Inbox, alerter: Run) -> None:
    inbox.answer_always = 503
    dead_letter(broker.bootstrap)
    alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS))
    until(lambda: ("fired", "letters") in history(broker.bootstrap), "the firing")
    silence(broker.bootstrap, "letters", 3600)
    until(lambda: ("not delivered", "letters") in history(broker.bootstrap), "the withdrawal")
    assert inbox.received == []


def test_a_group_that_stops_reading_is_told_of_and_its_return(
    broker: BrokerThread, inbox: Inbox, alerter: Run
) -> None:
    with Producer(broker.bootstrap) as producer:
        for _ in range(10):
            producer.send_and_wait("orders", "x")
    with Admin(broker.bootstrap) as admin:
        [partition] = admin.partitions_of("orders")
        admin.set_group_offsets("billing", {partition: 3})
        text = """
[[rule]]
name = "stopped"
kind = "lag-state"
groups = ["bill*"]
[[rule]]
name = "late"
kind = "lag-records"
above = 5
[[rule]]
name = "old"
kind = "lag-seconds"
above = "1h"
"""
        alerter(broker.bootstrap, rules(inbox, text))
        until(lambda: inbox.of("stopped") == ["firing"] and inbox.of("late") == ["firing"], "both notices")
        stopped = next(each.document for each in inbox.received if each.document["rule"] == "stopped")
        assert stopped["summary"] == "group billing is stalled: 7 records unread in orders-0"
        admin.set_group_offsets("billing", {partition: 10})
        until(
            lambda: inbox.of("stopped")[1:] == ["resolved"] and inbox.of("late")[1:] == ["resolved"],
            "the end",
        )
    assert inbox.of("old") == []


def test_a_receiver_that_fails_is_tried_again_and_delays_no_other(
    broker: BrokerThread, inbox: Inbox, alerter: Run, tmp_path: Path
) -> None:
    inbox.answer_always = 503
    told = tmp_path / "told"
    text = (
        rules(inbox, DEAD_LETTERS)
        + f"""
[[receiver]]
name = "file"
kind = "command"
command = ["sh", "-c", "echo $HEADRACE_ALERT_STATUS $HEADRACE_ALERT_LABEL_TOPIC >> {told}"]
"""
    )
    dead_letter(broker.bootstrap)
    running = alerter(broker.bootstrap, text)
    until(lambda: told.exists() and told.read_text() == "firing orders.dlq\n", "the other receiver's notice")
    dead_letter(broker.bootstrap, "other.dlq")
    until(lambda: "firing other.dlq" in told.read_text(), "the next notice")
    assert inbox.received == []
    inbox.answer_always = None
    until(lambda: inbox.of("letters") == ["firing", "firing"], "both after a while")
    looked_again(running)
    assert len(inbox.received) == 2


def test_what_cannot_be_delivered_is_given_up_and_counted(
    broker: BrokerThread, inbox: Inbox, alerter: Run
) -> None:
    inbox.answer_always = 500
    text = rules(inbox, DEAD_LETTERS).replace('kind = "webhook"', 'kind = "webhook"\nretry_for = "0.1s"')
    dead_letter(broker.bootstrap)
    alerter(broker.bootstrap, text)
    until(lambda: ("not delivered", "letters") in history(broker.bootstrap), "giving up")
    with Admin(broker.bootstrap) as admin:
        acting = Store({"bootstrap.servers": broker.bootstrap}).read(admin).acting
    assert acting is not None
    assert acting.failed == 1
    inbox.answer_always = None
    forget_letters(broker.bootstrap)
    until(lambda: ("resolved", "letters") in history(broker.bootstrap), "the end")
    assert inbox.received == [], "who never heard of it hears nothing of its end"


AWAY = """
[[rule]]
name = "away"
kind = "cluster-away"
for = "1s"
"""


def test_while_the_cluster_is_away_that_is_told_and_nothing_else_changes(
    broker: BrokerThread, inbox: Inbox, alerter: Run
) -> None:
    dead_letter(broker.bootstrap)
    running = alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS + AWAY))
    until(lambda: inbox.of("letters") == ["firing"], "the notice")
    until(lambda: ("delivered", "letters") in history(broker.bootstrap), "the record of it")
    broker.kill()
    until(lambda: inbox.of("away") == ["firing"], "that the cluster is away")
    assert "has not answered" in inbox.received[-1].document["summary"]
    looked_again(running, 1)
    broker.start()
    until(lambda: inbox.of("away") == ["firing", "resolved"], "that it is back")
    looked_again(running)
    assert inbox.of("letters") == ["firing"]
    forget_letters(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing", "resolved"], "the end, after the outage")


def test_an_alerter_that_starts_without_its_cluster_says_so_and_works_later(
    broker: BrokerThread, inbox: Inbox, alerter: Run
) -> None:
    dead_letter(broker.bootstrap)
    broker.kill()
    alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS + AWAY.replace("1s", "0.2s")))
    until(lambda: inbox.of("away") == ["firing"], "that the cluster is away")
    broker.start()
    until(lambda: inbox.of("away") == ["firing", "resolved"], "that it is back")
    until(lambda: inbox.of("letters") == ["firing"], "the notice")


def test_one_acts_and_after_a_kill_another_goes_on_without_firing_again(
    broker: BrokerThread, inbox: Inbox, instance: Start, alerter: Run
) -> None:
    first = instance(broker.bootstrap, rules(inbox, DEAD_LETTERS))
    until(lambda: "acts now" in first.said, "the first acts")
    second = alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS), "second")
    dead_letter(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing"], "the notice")
    # A kill between a notice and its record would have it sent again.
    until(lambda: ("delivered", "letters") in history(broker.bootstrap), "the record of it")
    looked_again(second)
    assert second.role is Role.STANDBY
    first.kill()
    until(lambda: second.role is Role.ACTING, "the second acts")
    looked_again(second)
    assert inbox.of("letters") == ["firing"]
    forget_letters(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing", "resolved"], "the end")


def test_one_that_was_paused_finds_itself_fenced_and_sends_nothing(
    broker: BrokerThread, inbox: Inbox, instance: Start, alerter: Run
) -> None:
    paused = instance(broker.bootstrap, rules(inbox, DEAD_LETTERS))
    until(lambda: "acts now" in paused.said, "the first acts")
    second = alerter(broker.bootstrap, rules(inbox, DEAD_LETTERS), "second")
    paused.signal(signal.SIGSTOP)
    until(lambda: second.role is Role.ACTING, "the second acts")
    dead_letter(broker.bootstrap)
    until(lambda: inbox.of("letters") == ["firing"], "the notice")
    paused.signal(signal.SIGCONT)
    until(lambda: "stands by" in paused.said, "the first stands by")
    looked_again(second)
    assert inbox.of("letters") == ["firing"]
    assert second.role is Role.ACTING
    assert not re.search("acts now(.|\n)*acts now", paused.said)

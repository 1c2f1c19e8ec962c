"""A courier: retries, gives up, withdraws, and is held up by nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from headrace.watch.alerts.courier import Courier, Report
from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.receivers.base import NotDelivered
from headrace.watch.alerts.states import Outcome, Phase
from tests.waiting import until


def notice(key: str, phase: Phase = Phase.FIRING) -> Notice:
    return Notice(key, f"{key}@1", phase, key, "k", "info", (), "s", None, 0, 0, None, None, "c", 60)


class Receiver:
    """Refuses what it is told to refuse."""

    def __init__(self) -> None:
        self.refused: dict[str, NotDelivered] = {}
        self.taken: list[str] = []
        self.tried: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def deliver(self, notice: Notice) -> None:
        self.tried.append(notice.key)
        self.gate.wait()
        if notice.key in self.refused:
            raise self.refused[notice.key]
        self.taken.append(notice.key)

    def close(self) -> None:
        """Nothing to release."""


Make = Callable[..., Courier]


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def courier(reports: list[Report]) -> Iterator[Make]:
    made: list[Courier] = []

    def make(
        receiver: Receiver, retry_for: float = 600.0, may_send: Callable[[], bool] = lambda: True
    ) -> Courier:
        made.append(Courier("r", receiver, retry_for, may_send, reports.append, lambda *_: None))
        return made[-1]

    yield make
    for each in made:
        each.close(1.0)


def test_what_is_refused_for_ever_delays_nothing(courier: Make, reports: list[Report]) -> None:
    receiver = Receiver()
    receiver.refused["bad"] = NotDelivered("no")
    carrier = courier(receiver)
    carrier.submit(notice("bad"))
    for number in range(20):
        carrier.submit(notice(f"good-{number}"))
    until(lambda: len(receiver.taken) == 20, "the others")
    until(lambda: receiver.tried.count("bad") >= 2, "another attempt")
    assert carrier.is_carrying("bad") is not None
    assert all(report.outcome is Outcome.SENT for report in reports)


def test_it_gives_up_when_the_time_is_over(courier: Make, reports: list[Report]) -> None:
    receiver = Receiver()
    receiver.refused["bad"] = NotDelivered("no")
    courier(receiver, retry_for=0.1).submit(notice("bad"))
    until(lambda: reports, "the report")
    assert (reports[0].outcome, reports[0].attempts, reports[0].reason) == (Outcome.FAILED, 1, "no")


def test_what_is_withdrawn_is_reported_and_not_tried_again(courier: Make, reports: list[Report]) -> None:
    receiver = Receiver()
    receiver.refused = {"sure": NotDelivered("no"), "unsure": NotDelivered("?", may_have_arrived=True)}
    carrier = courier(receiver)
    for key in receiver.refused:
        carrier.submit(notice(key))
        until(lambda key=key: key in receiver.tried, "the first attempt")  # type: ignore[misc]
        carrier.withdraw(key)
        until(lambda key=key: key in [each.notice.key for each in reports], "the report")  # type: ignore[misc]
    assert [each.outcome for each in reports] == [Outcome.FAILED, Outcome.DOUBTFUL]
    assert receiver.tried == ["sure", "unsure"]


def test_a_notice_counts_as_carried_until_its_report_is_read(courier: Make, reports: list[Report]) -> None:
    carrier = courier(Receiver(), may_send=(permission := threading.Event()).is_set)
    carrier.submit(notice("waits"))
    carrier.withdraw("waits")
    permission.set()
    carrier.submit(notice("sent"))
    until(lambda: len(reports) == 2, "the reports")
    carrier.withdraw("waits")
    carrier.withdraw("sent")
    assert len(reports) == 2, "what is over is not withdrawn"
    for report in reports:
        assert carrier.is_carrying(report.notice.key) is not None
        carrier.settled(report.notice.key)
        assert carrier.is_carrying(report.notice.key) is None


def test_nothing_leaves_without_permission(courier: Make, reports: list[Report]) -> None:
    receiver, permission = Receiver(), threading.Event()
    carrier = courier(receiver, may_send=permission.is_set)
    carrier.submit(notice("a"))
    carrier.withdraw("a")
    assert reports[0].outcome is Outcome.FAILED
    carrier.submit(notice("b"))
    assert receiver.tried == []
    permission.set()
    until(lambda: receiver.taken == ["b"], "the notice")


def test_closing_delivers_what_has_not_been_tried(reports: list[Report]) -> None:
    receiver = Receiver()
    carrier = Courier("r", receiver, 600, lambda: True, reports.append, lambda *_: None)
    for number in range(10):
        carrier.submit(notice(str(number)))
    carrier.close(60)
    assert len(receiver.taken) == 10

"""The states of a log, and what a call does in each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from headrace.server.log.environment import Environment
from headrace.server.log.files import FileHandle, Files
from headrace.server.log.life import TRANSITIONS, Event, State
from headrace.server.log.partition import ReopenFacts
from headrace.wire.errors import ErrorCode, KafkaError


class HeldFiles(Files):
    """Calls a test before a thread other than its own opens a file."""

    __slots__ = ("_own", "before_open")

    def __init__(self) -> None:
        self._own = threading.get_ident()
        self.before_open: Callable[[], object] = lambda: None

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> FileHandle:
        if threading.get_ident() != self._own:
            self.before_open()
        return super().open(path, writable=writable, create=create)


@pytest.fixture
def during_reopening(lab, clock):
    """Reopens an offline log in a thread and does something here when that has begun to read."""
    files = HeldFiles()
    lab.environment = Environment(files=files, clock=clock)

    def reopen(log, change):
        reached, go_on = threading.Event(), threading.Event()
        raised = []

        def wait():
            reached.set()
            assert go_on.wait(60)

        def run():
            try:
                log.reopen()
            except KafkaError as error:
                raised.append(error)

        files.before_open = wait
        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert reached.wait(60)
            change()
        finally:
            go_on.set()
            thread.join(60)
        assert not thread.is_alive()
        return raised

    return reopen


def failed(lab):
    log = lab.open()
    for _ in range(3):
        lab.append(log, b"v")
    log.take_offline("a test says so")
    return log


def refusal(call):
    with pytest.raises(KafkaError) as caught:
        call()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    return caught.value.message


def test_every_state_says_what_a_failure_and_the_end_of_the_partition_make_of_it():
    assert set(TRANSITIONS) == set(State)
    assert all({Event.FAILED, Event.RETIRED} <= ways.keys() for ways in TRANSITIONS.values())


def test_nothing_leads_out_of_a_retired_log():
    assert set(TRANSITIONS[State.RETIRED].values()) == {State.RETIRED}


def test_an_offline_log_refuses_everything_until_it_is_reopened(lab):
    log = failed(lab)
    calls = [
        lambda: lab.append(log, b"w"),
        lambda: log.read(0, 1),
        lambda: log.truncate_to(1),
        lambda: log.delete_old_segments(),
        lambda: log.flush(),
        lambda: log.latest_epoch,
        lambda: log.load(),
    ]
    for call in calls:
        assert "a test says so" in refusal(call)
    assert not log.close().clean
    log.reopen()
    assert log.offline_reason is None
    assert lab.append(log, b"w") == 3


def test_a_log_closed_twice_is_still_clean(lab):
    log = lab.open()
    lab.append(log, b"v")
    assert log.close() == log.close() == ReopenFacts(True, 1, 0, 0, (1, log.load().active.size))


def test_a_retired_log_does_not_come_back(lab):
    log = failed(lab)
    log.retire("the partition was deleted")
    assert "the partition was deleted" in refusal(log.reopen)
    log.take_offline("its data directory failed")
    assert log.offline_reason == "the partition was deleted"


def test_a_log_that_is_deleted_while_a_thread_reopens_it_stays_deleted(lab, during_reopening):
    log = failed(lab)
    raised = during_reopening(
        log, lambda: log.retire_to(f"{log.directory}.gone", "the partition was deleted")
    )
    assert len(raised) == 1
    assert log.offline_reason == "the partition was deleted"
    assert not log.is_loaded


def test_while_a_thread_reopens_a_log_others_are_refused_and_do_not_wait(lab, during_reopening):
    log = failed(lab)
    assert during_reopening(log, lambda: refusal(lambda: log.read(0, 1))) == []
    assert lab.values(log) == [b"v"] * 3

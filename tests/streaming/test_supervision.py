"""A run from start to stop, in the caller's thread and in one of its own."""

import threading

import pytest

from headrace.streaming.errors import StreamingError
from headrace.streaming.supervision import Ending, Run


class Counting:
    """Work that is done after so many turns, and notes what is asked of it."""

    def __init__(self, turns=None, *, breaks=None, left=None, unable=None):
        self.turns = turns
        self.breaks = breaks
        self.left = left
        self.unable = unable
        self.calls = []
        self.count = 0

    def start(self):
        self.calls.append("start")
        if self.unable is not None:
            raise self.unable

    def turn(self):
        self.count += 1
        if self.breaks is not None:
            raise self.breaks
        return Ending.DONE if self.count == self.turns else None

    def end(self, ending, error):
        self.calls.append((str(ending), error))

    def failure(self):
        return self.left

    def close(self):
        self.calls.append("close")

    def statuses(self):
        return [self.count]


def supervised(work, *callbacks):
    with Run(work) as run:
        run.start()
        return run.supervise(*callbacks)


def test_what_is_done_is_ended_and_closed_and_every_turn_is_shown():
    work, shown = Counting(3), []
    with Run(work) as run:
        run.start()
        assert run.supervise(lambda: shown.append(run.statuses)) is Ending.DONE
    assert work.calls == ["start", ("done", None), "close"]
    assert shown == [[1], [2]]


def test_an_interrupt_stops_the_work_and_goes_on():
    work, said = Counting(), []

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        supervised(work, interrupted, lambda: said.append("stopping"))
    assert work.calls == ["start", ("stopped", None), "close"]
    assert said == ["stopping"]


def test_somebody_who_cannot_show_it_has_not_broken_the_work():
    work = Counting()

    def nobody_reads():
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        supervised(work, nobody_reads)
    assert work.calls[1] == ("stopped", None)


def test_work_that_breaks_is_ended_as_failed():
    error = StreamingError("it broke")
    work = Counting(breaks=error)
    with pytest.raises(StreamingError, match="it broke"):
        supervised(work)
    assert work.calls == ["start", ("failed", error), "close"]


def test_in_the_background_it_goes_on_until_it_is_stopped():
    work = Counting()
    run = Run(work).in_background()
    assert run.is_active
    assert not run.wait(0.01)
    run.stop()
    assert not run.is_active
    assert work.calls == ["start", ("stopped", None), "close"]


def test_in_the_background_it_raises_what_failed_when_somebody_waits():
    work = Counting(1, left=StreamingError("one of two failed"))
    run = Run(work).in_background()
    with pytest.raises(StreamingError, match="one of two failed"):
        run.wait(60)
    assert work.calls == ["start", ("done", None), "close"]


def test_what_cannot_start_is_closed_and_leaves_no_thread():
    before = threading.active_count()
    work = Counting(unable=StreamingError("no"))
    with pytest.raises(StreamingError, match="no"):
        Run(work).in_background()
    assert work.calls == ["start", "close"]
    assert threading.active_count() == before


def test_the_end_of_the_block_stops_it_and_its_own_error_is_the_one_to_see():
    work = Counting(left=StreamingError("beside"))
    with pytest.raises(ValueError, match="mine"), Run(work).in_background():
        raise ValueError("mine")
    assert work.calls[-2:] == [("stopped", None), "close"]


def test_what_was_started_and_is_interrupted_before_it_is_supervised_is_stopped():
    work = Counting()

    def interrupted():
        with Run(work) as run:
            run.start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert work.calls == ["start", ("stopped", None), "close"]

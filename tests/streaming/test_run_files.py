"""The files of a run: one run at a time, a lock that dies with its process, a request to stop."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from headrace.streaming.run_files import RunFiles, RunningElsewhere

HOLD = """
import sys, time
from pathlib import Path
from headrace.streaming.run_files import RunFiles
files = RunFiles(*map(Path, sys.argv[1:]))
files.hold()
files.report({"state": "running"})
print("held", flush=True)
while not files.is_asked_to_stop:
    time.sleep(0.02)
"""


@pytest.fixture
def paths(tmp_path):
    return [tmp_path / "home" / name for name in ("lock", "status.json", "stop")]


@pytest.fixture
def elsewhere(paths):
    """Another process that holds the lock until it is asked to stop."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, *paths], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_where_nothing_was_run_nothing_is_there(paths):
    files = RunFiles(*paths)
    assert (files.is_alive, files.pid, files.last_report()) == (False, None, None)


def test_one_run_at_a_time_holds_the_lock(paths):
    first, second = RunFiles(*paths), RunFiles(*paths)
    first.hold()
    with pytest.raises(RunningElsewhere):
        second.hold()
    assert (second.is_alive, second.pid, first.is_held, second.is_held) == (True, os.getpid(), True, False)
    first.release()
    assert not second.is_alive
    second.hold()
    second.release()


def test_a_run_of_another_process_is_seen_and_stopped_through_its_files(paths, elsewhere):
    files = RunFiles(*paths)
    assert (files.is_alive, files.pid) == (True, elsewhere.pid)
    assert files.last_report() == {"state": "running"}
    assert not files.wait_until_over(0)
    files.ask_to_stop()
    assert files.wait_until_over(60)
    assert elsewhere.wait(60) == 0


def test_the_lock_of_a_process_that_was_killed_is_free(paths, elsewhere):
    elsewhere.send_signal(signal.SIGKILL)
    elsewhere.wait(60)
    files = RunFiles(*paths)
    assert not files.is_alive
    files.hold()
    files.release()


def test_a_request_to_stop_an_earlier_run_does_not_stop_the_next(paths):
    files = RunFiles(*paths)
    files.hold()
    files.ask_to_stop()
    files.release()
    files.hold()
    assert not files.is_asked_to_stop
    files.release()


def test_looking_at_a_lock_does_not_keep_a_run_from_starting(paths):
    files, done = RunFiles(*paths), threading.Event()
    files.hold()
    files.release()

    def look():
        while not done.is_set():
            RunFiles(*paths).is_alive  # noqa: B018

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(50):
            files.hold()
            files.release()
    finally:
        done.set()
        for looker in lookers:
            looker.join()


def test_a_lock_without_a_number_as_earlier_versions_leave_it_is_one(paths):
    import fcntl

    lock = paths[0]
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        files = RunFiles(*paths)
        assert (files.is_alive, files.pid) == (True, None)
        with pytest.raises(RunningElsewhere):
            files.hold()

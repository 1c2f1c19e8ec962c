"""How commands end: what the user reads, and which exit code a script sees."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from headrace.cli import frame
from headrace.cli.failure import Exit


@pytest.fixture
def bootstrap():
    """An address at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list"),
        ("topics", "create", "t"),
        ("produce", "t"),
        ("consume", "t"),
        ("configs", "describe", "topic", "t"),
        ("groups", "list"),
        ("perf", "produce", "t"),
    ],
)
def test_a_broker_that_is_not_there_is_named_with_the_way_to_start_one(headrace, bootstrap, arguments):
    ran = headrace(*arguments)
    assert ran.code == 3
    assert ran.err == (
        f"headrace: No broker answers at {bootstrap} (connection refused); start one with "
        f"'headrace up --listen {bootstrap}', or name a running one with --bootstrap-server.\n"
    )


def test_a_name_that_does_not_resolve(headrace):
    ran = headrace("topics", "list", "-b", "no-such-host.invalid:9092")
    assert (ran.code, ran.err) == (
        3,
        "headrace: The host name no-such-host.invalid cannot be resolved; check --bootstrap-server.\n",
    )


def test_kafkas_tools_name_the_address_too(headrace, bootstrap):
    ran = headrace("kafka", "topics", "--list")
    assert ran.code == 1
    assert f"No broker answers at {bootstrap}" in ran.out


def test_something_that_is_no_broker_is_told_apart(headrace):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        ran = headrace("topics", "list", "-b", address, "--command-config", "/dev/null")
        assert ran.code == 3
        assert (
            f"No broker answered at {address} within 10 s (something listens there; it hangs, or it is no broker)"
            in ran.err
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("topics", "crate"), "No such command 'crate'. Did you mean 'create'"),
        (("tpoics",), "No such command 'tpoics'. Did you mean 'topics'"),
        (("topics", "create"), "Missing argument"),
        (("topics", "create", "t", "--partitions", "0"), "0 is not in the range"),
        (("topics", "list", "--bogus"), "No such option: --bogus"),
        (("topics", "create", "t", "--config", "nonsense"), "--config takes key=value, not 'nonsense'."),
    ],
)
def test_a_wrong_command_line_ends_with_status_2(headrace, arguments, sentence):
    ran = headrace(*arguments)
    assert ran.code == 2
    assert sentence in ran.err


def test_a_properties_file_that_is_not_there(headrace, tmp_path):
    ran = headrace("topics", "list", "--command-config", tmp_path / "nowhere")
    assert ran.code == 1
    assert f"Cannot read {tmp_path / 'nowhere'}: No such file or directory." in ran.err


def test_the_version(headrace):
    from headrace import __version__
    from headrace.compiled import build

    assert headrace("--version").out == f"headrace {__version__} ({build()})\n"


def test_output_nobody_reads_is_no_failure_of_a_short_command():
    """The reader is gone before the command writes its first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert process.wait(30) == 141
    assert process.stderr.read() == ""


def test_a_full_disk_below_the_output_is_one_sentence():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "headrace: Reading or writing failed: No space left on device.\n",
    )


def test_a_file_that_cannot_be_used_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert frame.run(lambda: (tmp_path / "file" / "x").mkdir()) == Exit.FAILED
    assert capsys.readouterr().err == f"headrace: {tmp_path}/file/x cannot be used: Not a directory.\n"


def test_characters_that_the_terminal_does_not_have_do_not_end_a_command():
    program = (
        "import headrace.cli.frame as frame, sys\n"
        r"sys.exit(frame.run(lambda: print('orders \u2192 \udcff') or 0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
        check=True,
    )
    assert done.stdout == b"orders \\u2192 \\udcff\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "create", "t", "--partitions", "99999999999"),
        ("consume", "t", "--offset", "99999999999999999999999"),
        ("topics", "delete-records", "t", "--before", "99999999999999999999999"),
        ("produce", "t", "--partition", "99999999999"),
        ("transactions", "abort", "t", "--partition", "0", "--start-offset", "99999999999999999999999"),
        ("partitioner", "simulate", "--partitions", "2", "--to", "99999999999"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_numbers_of_any_size_get_a_sentence(headrace, broker, arguments):
    """Against a broker: some are found out only when they are sent."""
    headrace("topics", "create", "t", "--if-not-exists", "-b", broker.bootstrap)
    ran = headrace(*arguments, stdin="a\n", env={"HEADRACE_BOOTSTRAP": broker.bootstrap})
    assert ran.code in (1, 2)
    assert ran.err.strip()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("produce", "t", "--acks", "7"), "--acks takes 0, 1, all or -1, not '7'."),
        (
            ("produce", "t", "--compression", "zip"),
            "--compression takes none, gzip, snappy, lz4 or zstd, not",
        ),
        (("consume", "t", "--isolation-level", "x"), "--isolation-level takes read_uncommitted or read_co"),
        (("consume", "t", "--timeout", "-1"), "-1.0 is not in the range"),
    ],
)
def test_an_option_names_what_it_takes(headrace, arguments, sentence):
    ran = headrace(*arguments)
    assert ran.code == 2
    assert sentence in ran.err


def missing(name):
    raise ModuleNotFoundError(f"No module named '{name}'", name=name)


@pytest.mark.parametrize(("module", "extra"), [("pyspark.sql", "spark"), ("kazoo", "services")])
def test_a_missing_extra_is_named(capsys, module, extra):
    assert frame.run(lambda: missing(module)) == Exit.FAILED
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"pip install 'headrace[{extra}]', or make setup in a checkout." in told


def test_a_module_of_our_own_that_is_missing_is_a_bug_and_not_hidden():
    with pytest.raises(ModuleNotFoundError):
        frame.run(lambda: missing("headrace.no_such"))


SWALLOWS = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(100_000):
        pass
except BaseException:
    pass
"""


@pytest.fixture
def alarm():
    """An alarm of the caller's, hours away; the test's own timeout gets its alarm back afterwards."""
    handler, (left, _) = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 9000, 5000)
    yield signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, left)


def is_as_the_caller_set_it(alarm):
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    return signal.getsignal(signal.SIGALRM) == alarm and 5000 < left <= 9000 and interval == 5000


def test_a_command_leaves_the_alarm_of_its_caller_alone(alarm):
    assert frame.run(lambda: int(is_as_the_caller_set_it(alarm))) == 1
    assert is_as_the_caller_set_it(alarm)


def test_a_sigterm_in_the_middle_of_an_import_is_not_swallowed(tmp_path, monkeypatch, alarm):
    (tmp_path / "swallows_what_is_raised.py").write_text(SWALLOWS)
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.getsignal(signal.SIGTERM)

    def command():
        import swallows_what_is_raised  # noqa: F401

        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.01)
        return 0

    assert frame.run(command) == Exit.TERMINATED
    assert signal.getsignal(signal.SIGTERM) == before
    assert is_as_the_caller_set_it(alarm)


def test_a_sigterm_in_an_import_that_never_ends_is_heeded_too(tmp_path, monkeypatch):
    endless = "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\nwhile True: time.sleep(0.01)\n"
    (tmp_path / "never_ends.py").write_text(endless)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(frame, "_IMPORT_PATIENCE", 0.2)
    assert frame.run(lambda: importlib.import_module("never_ends")) == Exit.TERMINATED

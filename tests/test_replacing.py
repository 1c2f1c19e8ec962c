"""Files of state: whoever looks, whenever a writer ends, finds the old content or the new one."""

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from headrace.replacing import replace_file


def test_a_write_that_fails_leaves_the_old_content_and_nothing_beside_it(tmp_path):
    file = tmp_path / "state.json"
    replace_file(file, "old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(file, "half \ud800")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_two_writers_and_a_reader_do_not_disturb_each_other(tmp_path):
    file = tmp_path / "state.json"
    texts = {letter * 100_000 for letter in "ab"}
    replace_file(file, "a" * 100_000)
    failures = []

    def write(text):
        try:
            for _ in range(200):
                replace_file(file, text, durable=False)
        except OSError as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert file.read_text() in texts
    assert failures == []


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    file = tmp_path / "state.json"
    program = textwrap.dedent("""
        import json, pathlib, sys
        from headrace.replacing import replace_file
        while True:
            replace_file(pathlib.Path(sys.argv[1]), json.dumps(list(range(50_000))), durable=False)
    """)
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", program, str(file)])
        try:
            deadline = time.monotonic() + 60
            while not file.exists():
                assert time.monotonic() < deadline
                time.sleep(0.001)
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        assert len(json.loads(file.read_text())) == 50_000
        file.unlink()

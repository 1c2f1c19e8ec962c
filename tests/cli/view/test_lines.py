from __future__ import annotations

import os
import threading

from headrace.cli.view.records.lines import read_lines


def lines_of(*pieces: bytes) -> list[bytes]:
    reading, writing = os.pipe()

    def write() -> None:
        for piece in pieces:
            os.write(writing, piece)
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return list(read_lines(reading, lambda: None))
    finally:
        writer.join()
        os.close(reading)


def test_lines_come_without_their_endings() -> None:
    assert lines_of(b"a\nb\r\n\nc") == [b"a", b"b", b"", b"c"]


def test_nothing_has_no_lines() -> None:
    assert lines_of() == []


def test_a_line_longer_than_the_pipe_stays_whole() -> None:
    long = b"x" * 200_000
    assert lines_of(long, b"y\nz\n") == [long + b"y", b"z"]


def test_other_work_is_done_while_no_line_arrives() -> None:
    reading, writing = os.pipe()
    waited = threading.Event()

    def write() -> None:
        waited.wait(30)
        os.write(writing, b"late\n")
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    assert list(read_lines(reading, waited.set)) == [b"late"]
    writer.join()
    os.close(reading)

"""What clients choose, such as the name of a group, cannot forge a line of the broker's log or move the terminal's cursor."""

import logging

from headrace.server.log_lines import OneLine


def line(message, *values, **more):
    record = logging.LogRecord(
        "headrace", logging.INFO, "file", 1, message, values, **{"exc_info": None, **more}
    )
    return OneLine("%(levelname)s %(message)s").format(record)


def test_a_name_with_a_line_end_stays_on_its_line():
    told = line("Group %s is empty.", "a\n2026-11-18 INFO all is well\x1b[2J\u2028ü")
    assert told == r"INFO Group a\n2026-11-18 INFO all is well\x1b[2J\u2028ü is empty."


def test_a_traceback_keeps_its_lines():
    try:
        raise ValueError("wrong")
    except ValueError as error:
        told = line("failed", exc_info=(type(error), error, error.__traceback__))
    assert told.splitlines()[0] == "INFO failed"
    assert told.splitlines()[-1] == "ValueError: wrong"

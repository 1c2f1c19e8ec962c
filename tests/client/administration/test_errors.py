"""How an operation's refusal reads."""

from __future__ import annotations

import pytest

from headrace.client import BrokerError
from headrace.client.administration.errors import Refused, Unreachable, check
from headrace.wire.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "message", "sentence"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, None, "Group id not found."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "GROUP_ID_NOT_FOUND", "Group id not found."),
        (ErrorCode.INVALID_CONFIG, "retention.ms is no number", "retention.ms is no number."),
        (9999, None, "The broker answered with the unknown error 9999."),
    ],
)
def test_a_refusal_is_a_sentence_with_kafkas_code(code: int, message: str | None, sentence: str) -> None:
    with pytest.raises(BrokerError) as raised:
        check(code, message)
    assert (str(raised.value), raised.value.code) == (sentence, code)


def test_no_error_is_no_refusal() -> None:
    check(ErrorCode.NONE, "ignored")


def test_an_unknown_code_has_a_name_all_the_same() -> None:
    assert (Refused(9999).name, Refused(3).name) == ("UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_OR_PARTITION")


def test_a_broker_that_cannot_be_reached_is_worth_another_try() -> None:
    assert Unreachable("the broker at h:1 cannot be reached").retriable

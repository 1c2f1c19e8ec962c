"""How an operation fails. Each message is a sentence for the user."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

from headrace.client.errors import BrokerError, ClientError
from headrace.wire.errors import ErrorCode

_DENIED = re.compile(r"authorization failed\.$", re.IGNORECASE)
"""Kafka's words, which name neither the permission nor who lacks it."""


class Refused(BrokerError):
    """The cluster refused a request; ``code`` is Kafka's error code."""

    def __init__(self, code: int, message: str | None = None) -> None:
        try:
            name = ErrorCode(code).name
        except ValueError:
            name = f"The broker answered with the unknown error {code}"
        text = message if message and message != name else name.replace("_", " ").capitalize()
        super().__init__(_as_sentence(text), code)

    @property
    def name(self) -> str:
        """Kafka's name for the error."""
        try:
            return ErrorCode(self.code).name
        except ValueError:
            return ErrorCode.UNKNOWN_SERVER_ERROR.name


class LoginRefused(Refused):
    """A broker did not let us in."""


class Unreachable(BrokerError):
    """No broker that could answer can be reached."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message[0].upper()}{message[1:]}.", KafkaError._TRANSPORT, retriable=True)


class NotPossible(ClientError):
    """The cluster, as it is, does not allow what was asked: something is missing, or in use."""


class UnknownTopic(NotPossible):
    def __init__(self, topic: str) -> None:
        super().__init__(f"There is no topic '{topic}'.")
        self.topic = topic


def check(code: int, message: str | None = None) -> None:
    """Raises Refused for an error code."""
    if code != ErrorCode.NONE:
        raise Refused(code, message)


def refused_by_librdkafka(error: KafkaError) -> Refused:
    return Refused(error.code(), sentence(error))


def sentence(error: KafkaError) -> str:
    text = re.sub(r"\b(Broker|Local): ", "", error.str()).strip() or error.name()
    return _as_sentence(text)


def _as_sentence(text: str) -> str:
    whole = text if text.endswith(".") else f"{text}."
    if _DENIED.search(whole):
        return f"{whole[:-1]}: this user lacks a permission. 'headrace acls explain USER OPERATION RESOURCE' says why."
    return whole

"""What Spark says of a failure, cut down to its cause, and whether trying again can help."""

from __future__ import annotations

import re

from headrace.streaming.cause import QUERY, cause_in

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+\.?")
_PLACE = re.compile(r"\s*[;(]?\s*\(?line \d+,? pos \d+\)?;?")
_ENDED_QUERY = re.compile(r"^\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: ")
_JAVA_CAUSE = re.compile(r"^Caused by: (?:[a-z][\w]*\.)+(?P<kind>[A-Z]\w*): (?P<message>.+)$")
_ADVICE = ". Consider "
"""How Spark begins to recommend settings of its own."""

TOO_BUSY = "Spark did not get one of its Python processes started within the 10 s it allows: this machine is too busy."
_BUSY = "worker failed to connect back"
_TRANSIENT = (
    "BrokerUnavailable",
    "LEADER_NOT_AVAILABLE",
    "has no leader",
    "REQUEST_TIMED_OUT",
    "Cannot fetch record",
    "NOT_ENOUGH_REPLICAS",
    "NOT_LEADER",
    "COORDINATOR",
    "_TRANSPORT",
    "_TIMED_OUT",
    "_ALL_BROKERS_DOWN",
    "Connection refused",
    _BUSY,
    # A transaction that was open for too long, as on a machine that slept: nothing of its batch was written.
    "were aborted before they could be committed",
    "took over its transaction",
)


def is_busy(error: BaseException | str) -> bool:
    """Whether this machine was too busy for Spark, which says nothing about the query."""
    return _BUSY in str(error)


def is_transient(error: BaseException | str) -> bool:
    """Whether the cluster was away or busy, so that trying again can help."""
    return any(sign in str(error) for sign in _TRANSIENT)


def reason(text: str) -> str:
    """The innermost cause in a message that may hold Java and Python stacks: ours, else that of the user's code, else
    Spark's own."""
    if (cause := cause_in(text)) is not None:
        return str(cause) if cause.is_ours else _plain(str(cause))
    text = _ENDED_QUERY.sub("", text.partition(QUERY)[0])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = next((line for line in lines if _CONDITION.search(line)), None)
    if named is not None:
        return _plain(named[named.index("[") :])
    causes = [match for line in lines if (match := _JAVA_CAUSE.match(line))]
    if causes:
        return _plain(causes[-1]["message"].partition(_ADVICE)[0])
    return _plain(lines[0]) if lines else "Spark gave no reason"


def without_sqlstate(text: str) -> str:
    return _STATE.sub("", text).strip()


def _plain(text: str) -> str:
    """Without the names, numbers and places that Spark gives its errors."""
    return _PLACE.sub("", without_sqlstate(_CONDITION.sub("", text))).replace("`", "'").strip()


def condition_of(error: BaseException) -> str | None:
    """Spark's name for the kind of error."""
    get = getattr(error, "getCondition", None)
    name = get() if callable(get) else None
    return name if isinstance(name, str) else None


def parameters_of(error: BaseException) -> dict[str, str]:
    """What the error is about, by Spark's names."""
    get = getattr(error, "getMessageParameters", None)
    found = get() if callable(get) else None
    return dict(found) if found else {}


def talking_to_spark() -> tuple[type[Exception], ...]:
    """What any call of Spark may raise, also when its process is gone."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
    except ImportError:
        return (OSError,)
    return (PySparkException, Py4JError, OSError)

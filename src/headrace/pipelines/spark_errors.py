"""Spark's errors as one sentence: the cause without the stack, and the remedy where there is a usual one."""

from __future__ import annotations

import re

from headrace.pipelines.errors import PipelineError
from headrace.pipelines.expectations import FAILED
from headrace.spark.cause import cause_in

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+\.?")
_PLACE = re.compile(r"\s*[;(]?\s*\(?line \d+,? pos \d+\)?;?")
_ENDED_QUERY = re.compile(r"^\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: ")
_JAVA_CAUSE = re.compile(r"^(?:Caused by: )?(?:[a-z][\w]*\.)+(?P<kind>[A-Z]\w*): (?P<message>.+)$")

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


def sentence(error: BaseException) -> str:
    """What went wrong, for a person; an error of the user's own code keeps the name of its class."""
    if isinstance(error, PipelineError):
        return str(error)
    if not type(error).__module__.startswith(("pyspark", "py4j")):
        return _ended(f"{type(error).__name__}: {error}")
    condition = condition_of(error)
    parameters = parameters_of(error)
    if condition is not None and condition.startswith("UNRESOLVED_COLUMN"):
        name = parameters.get("objectName", "").replace("`", "")
        near = parameters.get("proposal", "").replace("`", "")
        return f"There is no column '{name}' here." + (f" There are: {near}." if near else "")
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = parameters.get("relationName", "").replace("`", "")
        return f"There is no table, view or topic '{name}' in this project or in Spark's catalog."
    text = str(error)
    if "without watermark" in text and "append" in text:
        return (
            "An aggregation in output mode append needs an end: give its time column a withWatermark(…), or write it "
            "to a table (hp.table), which is updated by key."
        )
    if is_busy(error):
        return TOO_BUSY
    if FAILED in text:
        reason = text.partition(FAILED)[2].splitlines()[0]
        return f"A row stopped the flow: {_STATE.sub('', reason).strip()}."
    return _ended(_from_text(text) or type(error).__name__)


def condition_of(error: BaseException) -> str | None:
    get = getattr(error, "getCondition", None)
    name = get() if callable(get) else None
    return name if isinstance(name, str) else None


def parameters_of(error: BaseException) -> dict[str, str]:
    get = getattr(error, "getMessageParameters", None)
    found = get() if callable(get) else None
    return dict(found) if found else {}


def _from_text(text: str) -> str:
    """The innermost cause in a message that may hold Java and Python stacks."""
    if (cause := cause_in(text)) is not None:
        return _clean(str(cause))
    lines = [line.strip() for line in _ENDED_QUERY.sub("", text).splitlines() if line.strip()]
    named = next((line for line in lines if _CONDITION.search(line)), None)
    if named is not None:
        return _clean(named[named.index("[") :])
    causes = [match for line in lines if line.startswith("Caused by") and (match := _JAVA_CAUSE.match(line))]
    if causes:
        return _clean(causes[-1]["message"])
    return _clean(lines[0]) if lines else ""


def _clean(text: str) -> str:
    text = _CONDITION.sub("", text)
    return _PLACE.sub("", _STATE.sub("", text)).replace("`", "'").strip()


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def is_busy(error: BaseException) -> bool:
    """Whether this machine was too busy for Spark, which says nothing about the flow."""
    return _BUSY in str(error)


def is_transient(error: BaseException) -> bool:
    """Whether the cluster was away or busy, so that trying again can help."""
    return any(sign in str(error) for sign in _TRANSIENT)

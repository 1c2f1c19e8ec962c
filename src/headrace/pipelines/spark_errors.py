"""An error of a flow as one sentence: the cause without the stack, and the remedy where there is a usual one."""

from __future__ import annotations

from headrace.pipelines.expectations import FAILED
from headrace.streaming.errors import StreamingError
from headrace.streaming.spark_errors import (
    TOO_BUSY,
    condition_of,
    is_busy,
    parameters_of,
    reason,
    without_sqlstate,
)


def sentence(error: BaseException) -> str:
    """What went wrong, for a person; an error of the user's own code keeps the name of its class."""
    if isinstance(error, StreamingError):
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
    if is_busy(text):
        return TOO_BUSY
    if FAILED in text:
        broken = text.partition(FAILED)[2].splitlines()[0]
        return f"A row stopped the flow: {without_sqlstate(broken)}."
    return _ended(reason(text))


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."

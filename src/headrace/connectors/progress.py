"""What Spark says about a running query, in the few facts people ask for, and why a query failed in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# "…Error: the sentence" as the last line of the Python traceback that Spark wraps into its own exceptions.
_RAISED = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?(?P<kind>[A-Za-z_]\w*(?:Error|Exception|Record|Failed|Aborted|Full)): (?P<text>.+)$",
    re.M,
)


class Tally:
    """Rows since the query started. Spark remembers its last hundred batches only, so this counts along."""

    def __init__(self) -> None:
        self._rows = 0
        self._counted = -1
        self._last: dict[str, object] = {}

    def update(self, recent: Iterable[Mapping[str, Any]]) -> dict[str, object]:
        for one in recent:
            # An idle trigger reports the batch to come, without rows.
            if one["batchId"] > self._counted and one["numInputRows"]:
                self._counted = one["batchId"]
                self._rows += int(one["numInputRows"])
                self._last = {
                    "batch": one["batchId"],
                    "rows_per_second": round(float(one.get("processedRowsPerSecond") or 0), 1),
                    "batch_seconds": int(one["durationMs"].get("triggerExecution", 0)) / 1000,
                    "at": one["timestamp"],
                }
        return {"rows": self._rows, **self._last}


def reason(text: str) -> str:
    """The sentence inside the layers of a Spark failure."""
    raised = list(_RAISED.finditer(text))
    if raised:
        last = raised[-1]
        own = last["kind"] in (
            "ConnectorError",
            "RejectedRecord",
            "BrokerError",
            "ConfigError",
            "DeliveryError",
        )
        return last["text"] if own else f"{last['kind']}: {last['text']}"
    return text.strip().splitlines()[0] if text.strip() else "Spark gave no reason"

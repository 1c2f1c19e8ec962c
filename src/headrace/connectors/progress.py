"""What Spark says about a running query, in the few facts people ask for, and why a query failed in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from headrace.client.pace import Pace
from headrace.spark.cause import cause_in

# "….SomeException: the sentence", a line of the Java stacks that Spark wraps into its own exceptions.
_RAISED = re.compile(
    r"^(?:Caused by: )?(?P<module>(?:[A-Za-z_]\w*\.)*)(?P<kind>[A-Z]\w*): (?P<text>\S.*)$", re.M
)


class Tally:
    """Rows since the connector started, and their pace. Spark remembers its last hundred reports only, so this counts
    along."""

    def __init__(self) -> None:
        self.rows = 0
        self._seen = ""
        self._pace: Pace | None = None
        self._last: dict[str, object] = {}

    def update(self, recent: Iterable[Mapping[str, Any]]) -> dict[str, object]:
        for one in recent:
            if one["timestamp"] <= self._seen:
                continue
            self._seen = one["timestamp"]
            began = datetime.fromisoformat(one["timestamp"]).timestamp()
            seconds = int(one["durationMs"].get("triggerExecution", 0)) / 1000
            self.rows += int(one["numInputRows"])
            if one["numInputRows"]:  # else Spark has looked and found nothing new
                self._last = {"batch": one["batchId"], "batch_seconds": seconds, "at": began + seconds}
            self._pace = self._pace or Pace(began, 1)
            self._pace.take(began + seconds, [self.rows])
            self._last["rows_per_second"] = round(self._pace.rates[0], 1)
        return {"rows": self.rows, **self._last}


def reason(text: str) -> str:
    """The sentence inside the layers of a Spark failure: ours, else the user's code's, else Spark's own."""
    if (cause := cause_in(text)) is not None:
        return str(cause)
    text = text.partition("=== Streaming Query ===")[0]
    raised = list(_RAISED.finditer(text))
    spark = [match for match in raised if match["module"].startswith("org.apache.spark")]
    if spark:
        return spark[-1]["text"].partition(". Consider ")[0]
    return text.strip().splitlines()[0] if text.strip() else "Spark gave no reason"

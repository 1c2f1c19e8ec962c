"""Takes turns at starting queries: Spark gives each of a query's Python processes ten seconds to come up, however busy the
machine is, and each start takes all of a busy machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def is_starting(query: StreamingQuery) -> bool:
    """Whether Spark is still starting the Python processes that the query needs."""
    return query.isActive and query.status["message"].startswith("Initializing")


class Starts:
    """The queries of one session, of which one at a time is started."""

    def __init__(self) -> None:
        self._last: StreamingQuery | None = None

    @property
    def is_one_under_way(self) -> bool:
        return self._last is not None and is_starting(self._last)

    def started(self, query: StreamingQuery) -> StreamingQuery:
        self._last = query
        return query

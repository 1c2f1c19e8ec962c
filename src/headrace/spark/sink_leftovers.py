"""Transactions that killed tasks and drivers of a query have left open. Until they end, readers of
committed records see nothing that came after them, for as long as `kafka.transaction.timeout.ms`.

A task leaves one when it is killed, or cancelled, between its first row and the driver's word; a driver leaves all
of a batch when it is killed before it has recorded their list, or when its abort does not reach the brokers. What
is recorded is not left over: `sink_commit` commits it. The first batch of a run ends what earlier runs have left, and
waits for brokers that are away. Later batches look again now and then: a task of an earlier run may outlive its driver
and begin late.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Set
from dataclasses import dataclass

from headrace.link.cluster import Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.spark.sink_transactions import SinkTransactions
from headrace.wire.errors import KafkaError

log = logging.getLogger(__name__)

PREFIX = "headrace-spark"

SHORT_PATIENCE = 10.0
"""Seconds to ask for left-overs where a later look can find them, too."""

_BETWEEN_LOOKS, _AFTER_TROUBLE = 60.0, 10.0
"""Seconds from one look of a run to the next."""


def transactional_id(query: str, run: str, partition: int, attempt: int) -> str:
    """Of one attempt of a task. Batches of a run use the same ids again, so brokers remember only a few."""
    return f"{of_query(query)}{run}-{partition}.{attempt}"


def of_query(query: str) -> str:
    """How the transactional ids of a query begin."""
    return f"{PREFIX}-{query}-"


@dataclass(frozen=True, slots=True)
class _Look:
    run: str
    again_at: float


_looks: dict[tuple[Cluster, str], _Look] = {}
"""The last look at each query's left-overs; a process that knows of none looks."""


class LeftOvers:
    def __init__(self, cluster: Cluster, query: str, run: str) -> None:
        self._transactions = SinkTransactions(cluster)
        self._query = query
        self._run = run
        self._place = (cluster, query)

    @property
    def _is_first(self) -> bool:
        last = _looks.get(self._place)
        return last is None or last.run != self._run

    def are_due(self, *, repeated: bool) -> bool:
        """`repeated`: some task ran more than once, and an attempt may have left a transaction open."""
        return repeated or self._is_first or time.monotonic() >= _looks[self._place].again_at

    def end(self, listed: Set[str], *, repeated: bool) -> None:
        """Abort what is open of the query, save what is listed to be committed, and fence who began it. What cannot be
        ended within the time allowed is logged, and retried with a later batch."""
        patience = None if repeated or self._is_first else SHORT_PATIENCE
        try:
            count = self.abort(listed, patience)
            wait = _BETWEEN_LOOKS
            if count:
                log.warning(
                    "headrace: aborted %d transaction%s that earlier attempts of query %s left open",
                    count,
                    "" if count == 1 else "s",
                    self._query,
                )
        except (BrokerUnavailable, KafkaError) as error:
            log.warning(
                "headrace: transactions that earlier attempts of query %s left open stay so for now: %s",
                self._query,
                error,
            )
            wait = _AFTER_TROUBLE
        _looks[self._place] = _Look(self._run, time.monotonic() + wait)

    def abort(self, listed: Set[str], patience: float | None) -> int:
        """The same, once; returns how many there were."""
        left = set(self._transactions.open_ids(of_query(self._query), patience)) - listed
        self._transactions.fence(left)
        return len(left)

"""Committing a batch of a streaming query exactly once, however often and by however many drivers it is tried.

1. Look into the ledger: a batch that is recorded is finished, and the new rows are aborted.
2. See that every transaction is still open; record the list; if another run recorded the batch first, it has won.
3. Commit the transactions, then mark the entry finished.

A crash before 2 leaves open transactions that will never be committed (`sink_leftovers` ends them with the next batch); a
crash after it leaves a list that the next run finishes.
"""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headrace.link.cluster import Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.spark.ledger import TOPIC, Entry, Ledger, View, decided
from headrace.spark.sink_leftovers import PREFIX, SHORT_PATIENCE, LeftOvers, of_query, transactional_id
from headrace.spark.sink_options import TRANSACTION_TIMEOUT_MS
from headrace.spark.sink_transactions import ProducerIdentity, SinkTransactions, TransactionState
from headrace.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


class BatchCommit:
    def __init__(self, cluster: Cluster, query: str, run: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._transactions = SinkTransactions(cluster)
        self._left_overs = LeftOvers(cluster, query, run)
        self._query = query
        self._run = run
        self._timeout_ms = timeout_ms

    @functools.cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._cluster, self._query)

    def commit(self, batch: int, written: Sequence[ProducerIdentity], *, repeated: bool = False) -> None:
        """`repeated`: some task ran more than once, and an attempt may have left a transaction open."""
        view = self._ledger.read()
        first = self._run not in view.entries
        self._settle(batch, written, view)
        if self._left_overs.are_due(repeated=repeated):
            self._left_overs.end(_listed(view, batch), repeated=repeated)
        if first:
            self._forget_earlier_runs(batch, view)

    def finish(self, batch: int, *, repeated: bool = False) -> None:
        """An empty batch; if an earlier run recorded it with rows, that record stays valid."""
        if not self._left_overs.are_due(repeated=repeated):
            return
        view = self._ledger.read()
        found = decided(view.entries)
        if found is not None and found.batch == batch and found.run != self._run:
            self._finish(found, view)
        self._left_overs.end(_listed(view, batch), repeated=repeated)

    def abort(self, written: Sequence[ProducerIdentity], tasks: int) -> None:
        """Abort a batch that was never committed: what tasks reported, and what others may have begun."""
        self._transactions.end(written, commit=False)
        reported = {identity.transactional_id for identity in written}
        likely = {transactional_id(self._query, self._run, task, 0) for task in range(tasks)}
        begun = self._transactions.open_ids(of_query(self._query) + self._run + "-", SHORT_PATIENCE)
        self._transactions.fence((likely | set(begun)) - reported)

    def settle(self) -> None:
        """After the last run: commit the batch that was recorded, abort all else."""
        view = self._ledger.read()
        found = decided(view.entries)
        if found is not None:
            self._finish(found, view)
        self._left_overs.abort(set(), SHORT_PATIENCE)

    def _settle(self, batch: int, written: Sequence[ProducerIdentity], view: View) -> None:
        """Bring the batch to its one end."""
        found = decided(view.entries)
        replaces = -1
        if found is not None and found.batch >= batch:
            self._refuse_second_write(batch, written, view)
            if found.batch > batch or self._finish(found, view):
                log.warning(
                    "headrace: batch %d of query %s was written before: nothing is added", batch, self._query
                )
                self._abort(written, found)
                if found.batch == batch and self._run not in view.entries:
                    self._mark_finished(found, view)
                return
            replaces = found.recorded
        if not self._all_open(written):
            self._ledger.read_on(view)
            if decided(view.entries) == found:
                raise self._timed_out(batch)
            # It was another run that aborted them, because it has brought this batch to its end.
            self._settle(batch, written, view)
            return
        mine = self._ledger.append(
            Entry(self._query, self._run, batch, tuple(written), replaces=replaces), view
        )
        winner = decided(view.entries)
        assert winner is not None
        if winner.run != mine.run:
            log.warning("headrace: another run of query %s recorded batch %d first", self._query, batch)
            if winner.batch == batch and not self._finish(winner, view):
                raise self._timed_out(batch)
            self._abort(written, winner)
        elif not self._finish(mine, view):
            raise self._timed_out(batch)

    def _refuse_second_write(self, batch: int, written: Sequence[ProducerIdentity], view: View) -> None:
        """A run that has brought a batch to its end comes with more rows of it: foreachBatch may write several times."""
        mine = view.entries.get(self._run)
        if mine is None or mine.batch != batch or not mine.finished:
            return
        self._transactions.end(written, commit=False)
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Batch {batch} of query {self._query} was written already, and a second write of it would be lost when the "
            "batch is repeated: with exactlyOnce=true write once in foreachBatch; rows for several topics go together, "
            "with a column 'topic'.",
        )

    def _finish(self, entry: Entry, view: View) -> bool:
        """Commit what was recorded. False if none of it can be any more; an error if that holds for a part of it."""
        if entry.finished:
            return True
        states = self._transactions.states(entry.transactions)
        kinds = set(states.values())
        if TransactionState.ABORTED in kinds and kinds <= {TransactionState.ABORTED, TransactionState.OPEN}:
            self._transactions.end(_in(states, TransactionState.OPEN), commit=False)
            states = self._transactions.states(entry.transactions)
            kinds = set(states.values())
            if kinds == {TransactionState.ABORTED}:
                return False
        if kinds & {TransactionState.ABORTED, TransactionState.FORGOTTEN}:
            raise self._torn(entry, states)
        if self._transactions.end(_in(states, TransactionState.OPEN), commit=True):
            raise self._torn(entry, self._transactions.states(entry.transactions))
        self._mark_finished(entry, view)
        return True

    def _mark_finished(self, entry: Entry, view: View) -> None:
        """Note that for this run the batch has come to its end."""
        try:
            self._ledger.append(replace(entry, run=self._run, finished=True), view)
        except (BrokerUnavailable, KafkaError) as error:
            log.warning(
                "headrace: batch %d of query %s is committed, but not marked so: %s",
                entry.batch,
                self._query,
                error,
            )

    def _all_open(self, written: Sequence[ProducerIdentity]) -> bool:
        """Nothing is recorded that cannot be committed: if one of them is over, so are all."""
        states = self._transactions.states(written)
        if set(states.values()) == {TransactionState.OPEN}:
            return True
        self._transactions.end(_in(states, TransactionState.OPEN), commit=False)
        return False

    def _abort(self, written: Sequence[ProducerIdentity], winner: Entry) -> None:
        self._transactions.end([one for one in written if one not in winner.transactions], commit=False)

    def _forget_earlier_runs(self, batch: int, view: View) -> None:
        """Not those that recorded this batch, too: which of them has won must stay known until the next."""
        old = [run for run, entry in view.entries.items() if entry.batch < batch and run != self._run]
        if not old:
            return
        try:
            self._ledger.forget(old, view)
        except (BrokerUnavailable, KafkaError) as error:
            log.warning(
                "headrace: %d old entries of query %s stay in %s: %s", len(old), self._query, TOPIC, error
            )

    def _timed_out(self, batch: int) -> KafkaError:
        return KafkaError(
            ErrorCode.TRANSACTION_ABORTABLE,
            f"The transactions of batch {batch} were aborted before they could be committed, most likely because the "
            f"batch took longer than {self._timeout_ms / 1000:g} s: raise kafka.transaction.timeout.ms (and the brokers' "
            "transaction.max.timeout.ms) and start the query again. Nothing of the batch was written.",
        )

    def _torn(self, entry: Entry, states: Mapping[ProducerIdentity, TransactionState]) -> KafkaError:
        count = Counter(states.values())
        reported = ", ".join(f"{number} {state.value}" for state, number in count.items())
        return KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Batch {entry.batch} of query {self._query} was being committed when its driver ended, and the query came "
            f"back after its transactions had expired ({reported}): part of the batch may be missing. To write it again, "
            "with the committed part twice, start the query once with exactlyOnce=false; to prevent this, start "
            f"queries again within kafka.transaction.timeout.ms. The topic {TOPIC} has the list.",
        )


def _listed(view: View, batch: int) -> set[str]:
    """Transactional ids of a list that is recorded and not known to be committed; Spark is done with earlier batches."""
    found = decided(view.entries)
    if found is None or found.finished or found.batch < batch:
        return set()
    return {identity.transactional_id for identity in found.transactions}


def settle(cluster: Cluster, queries: Iterable[str]) -> None:
    """End what queries that were stopped have left open, so that readers of committed records need not wait for their
    next run. What cannot be ended now is logged, and that run ends it."""
    transactions = SinkTransactions(cluster)
    try:
        if not transactions.offered(SHORT_PATIENCE):
            return
        left = transactions.open_ids(f"{PREFIX}-", SHORT_PATIENCE)
        for query in queries:
            if any(transactional_id.startswith(of_query(query)) for transactional_id in left):
                found = decided(Ledger(cluster, query).read().entries)
                run = "" if found is None else found.run
                BatchCommit(cluster, query, run, TRANSACTION_TIMEOUT_MS).settle()
    except (BrokerUnavailable, KafkaError) as error:
        log.warning("headrace: transactions of stopped queries stay open until they expire: %s", error)


def _in(
    states: Mapping[ProducerIdentity, TransactionState], wanted: TransactionState
) -> list[ProducerIdentity]:
    return [identity for identity, state in states.items() if state is wanted]

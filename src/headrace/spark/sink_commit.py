"""Committing a batch of a streaming query exactly once, whoever does it and however often.

1. Look into the ledger: a batch that is recorded is finished, and the new rows are aborted.
2. See that every transaction is still open; record the list; if another run recorded the batch first, it has won.
3. Commit the transactions, then mark the entry finished.

A crash before 2 leaves open transactions that nobody will commit; a crash after it leaves a list that the next run
finishes. What earlier attempts left open is aborted by the first commit of a run, so that readers of committed records
need not wait for its timeout.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.spark.cluster import Cluster
from headrace.spark.connection import BrokerUnavailable
from headrace.spark.ledger import TOPIC, Entry, Ledger, View, decided
from headrace.spark.sink_transactions import Identity, State, Transactions
from headrace.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

PREFIX = "headrace-spark"


def transactional_id(query: str, run: str, partition: int, attempt: int) -> str:
    """Of one attempt of a task. Batches of a run use the same ids again, so brokers remember only a few."""
    return f"{PREFIX}-{query}-{run}-{partition}.{attempt}"


class BatchCommit:
    def __init__(self, cluster: Cluster, query: str, run: str, timeout_ms: int) -> None:
        self._transactions = Transactions(cluster)
        self._ledger = Ledger(cluster, query)
        self._query = query
        self._run = run
        self._timeout_ms = timeout_ms

    def commit(self, batch: int, written: Sequence[Identity], *, repeated: bool = False) -> None:
        """`repeated`: some task ran more than once, and an attempt may have left a transaction open."""
        view = self._ledger.read()
        first = self._run not in view.entries
        entry = self._settle(batch, written, view)
        try:
            if first or repeated:
                self._abort_others(entry)
            if first:
                self._forget_earlier_runs(batch, view)
        except (BrokerUnavailable, KafkaError) as error:
            log.warning(
                "headrace: left-overs of earlier runs of query %s stay for now: %s", self._query, error
            )

    def finish(self, batch: int) -> None:
        """A batch came without rows; if it had some when it was run before, and was recorded then, it stands."""
        view = self._ledger.read()
        found = decided(view.entries)
        if found is not None and found.batch == batch and found.run != self._run:
            self._finish(found, view)

    def abort(self, written: Sequence[Identity], tasks: int) -> None:
        """Abort a batch that was never committed: what tasks have told of, and what others of them may have begun."""
        self._transactions.end(written, commit=False)
        told = {identity.transactional_id for identity in written}
        likely = {transactional_id(self._query, self._run, task, 0) for task in range(tasks)}
        found = likely | set(self._transactions.open_ids(f"{PREFIX}-{self._query}-{self._run}-"))
        self._transactions.take_over(found - told, self._timeout_ms)

    def _settle(self, batch: int, written: Sequence[Identity], view: View) -> Entry:
        """Bring the batch to its one end; the entry that stands for it."""
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
                return found
            replaces = found.recorded
        self._require_open(batch, written)
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
            return winner
        if not self._finish(mine, view):
            raise self._timed_out(batch)
        return mine

    def _refuse_second_write(self, batch: int, written: Sequence[Identity], view: View) -> None:
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
        if State.ABORTED in kinds and kinds <= {State.ABORTED, State.OPEN}:
            self._transactions.end(_in(states, State.OPEN), commit=False)
            states = self._transactions.states(entry.transactions)
            kinds = set(states.values())
            if kinds == {State.ABORTED}:
                return False
        if kinds & {State.ABORTED, State.FORGOTTEN}:
            raise self._torn(entry, states)
        if self._transactions.end(_in(states, State.OPEN), commit=True):
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

    def _require_open(self, batch: int, written: Sequence[Identity]) -> None:
        """Nothing is recorded that cannot be committed."""
        states = self._transactions.states(written)
        if set(states.values()) != {State.OPEN}:
            self._transactions.end(_in(states, State.OPEN), commit=False)
            raise self._timed_out(batch)

    def _abort(self, written: Sequence[Identity], winner: Entry) -> None:
        self._transactions.end([one for one in written if one not in winner.transactions], commit=False)

    def _abort_others(self, entry: Entry) -> None:
        """Abort what other attempts and earlier runs of the query have left open, and fence them."""
        ours = {identity.transactional_id for identity in entry.transactions}
        left = set(self._transactions.open_ids(f"{PREFIX}-{self._query}-")) - ours
        if left:
            log.warning(
                "headrace: aborting %d transactions that earlier attempts of query %s left open",
                len(left),
                self._query,
            )
            self._transactions.take_over(left, self._timeout_ms)

    def _forget_earlier_runs(self, batch: int, view: View) -> None:
        """Not those that recorded this batch, too: which of them has won must stay known until the next."""
        old = [run for run, entry in view.entries.items() if entry.batch < batch and run != self._run]
        if old:
            self._ledger.forget(old, view)

    def _timed_out(self, batch: int) -> KafkaError:
        return KafkaError(
            ErrorCode.TRANSACTION_ABORTABLE,
            f"The transactions of batch {batch} were aborted before they could be committed, most likely because the "
            f"batch took longer than {self._timeout_ms / 1000:g} s: raise kafka.transaction.timeout.ms (and the brokers' "
            "transaction.max.timeout.ms) and start the query again. Nothing of the batch was written.",
        )

    def _torn(self, entry: Entry, states: Mapping[Identity, State]) -> KafkaError:
        count = Counter(states.values())
        told = ", ".join(f"{number} {state.value}" for state, number in count.items())
        return KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Batch {entry.batch} of query {self._query} was being committed when its driver ended, and the query came "
            f"back after its transactions had expired ({told}): part of the batch may be missing. To write it again, "
            "with the committed part twice, start the query once with exactlyOnce=false; to prevent this, start "
            f"queries again within kafka.transaction.timeout.ms. The topic {TOPIC} has the list.",
        )


def _in(states: Mapping[Identity, State], wanted: State) -> list[Identity]:
    return [identity for identity, state in states.items() if state is wanted]

"""Replication on one broker: a fetcher for each leader it follows, and the followers of the partitions it leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from headrace.clock import Clock
from headrace.server.cluster.peers import Peers
from headrace.server.replica.fetcher import FetcherSettings, ReplicaFetcher
from headrace.server.replica.isr import Ask, IsrChanges
from headrace.server.replica.partition import Partition
from headrace.server.replica.throttle import follower_throttle, leader_throttle

REST_AFTER_REFUSAL = 1.0
"""Seconds before a follower that the controller refused is proposed again: it fetches without a pause."""


class Replication:
    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        peers: Peers,
        ask_controller: Ask,
        clock: Clock,
        settings: FetcherSettings,
        lag_time_max_ms: int,
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._peers = peers
        self._clock = clock
        self._settings = settings
        self._longest_lag = lag_time_max_ms / 1000
        self.isr_changes = IsrChanges(broker_id, broker_epoch, ask_controller, clock)
        self.leader_throttle = leader_throttle(broker_id, clock)
        self._follower_throttle = follower_throttle(broker_id, clock)
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._followed: dict[Partition, int] = {}
        self._led: dict[Partition, None] = {}
        """Partitions this broker leads that have followers."""
        self._heard_from: dict[int, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self.isr_changes.run()), loop.create_task(self._watch_followers())]
        for partition, leader in self._followed.items():
            self._fetcher(leader).follow(partition)

    def limit(self, leader_rate: int, follower_rate: int) -> None:
        """Bytes per second that throttled replicas may take, from this broker and to it."""
        self.leader_throttle.limit(leader_rate)
        self._follower_throttle.limit(follower_rate)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        stopping = [fetcher.stop() for fetcher in self._fetchers.values()]
        await asyncio.gather(*self._tasks, *stopping, *self._stopping, return_exceptions=True)
        self._peers.close()

    # What this broker follows.

    def assign(self, partition: Partition) -> None:
        """The partition's role is known: follow its leader, or watch its followers."""
        leader = partition.leader_id
        if partition.leadership is not None:
            self._leave(partition)
            if partition.leadership.followers:
                self._led[partition] = None
            else:
                self._led.pop(partition, None)
            return
        self._led.pop(partition, None)
        if self._followed.get(partition, leader) != leader:
            self._leave(partition)
        if leader >= 0:
            self._followed[partition] = leader
            if self._tasks:
                self._fetcher(leader).follow(partition)

    def drop(self, partition: Partition) -> None:
        self._led.pop(partition, None)
        self._leave(partition)

    def _leave(self, partition: Partition) -> None:
        leader = self._followed.pop(partition, None)
        fetcher = self._fetchers.get(leader) if leader is not None else None
        if fetcher is None or leader is None:
            return
        fetcher.leave(partition)
        if fetcher.idle:
            del self._fetchers[leader]
            task = asyncio.get_running_loop().create_task(fetcher.stop())
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def _fetcher(self, leader: int) -> ReplicaFetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = ReplicaFetcher(
                leader,
                self._broker_id,
                self._broker_epoch,
                self._peers,
                self._clock,
                self._settings,
                self._follower_throttle,
            )
        return fetcher

    # The followers of this broker.

    def fetched(
        self, partition: Partition, replica: int, broker_epoch: int, offset: int, log_start_offset: int
    ) -> bool:
        """A follower sends its fetch offset and its log start offset; returns whether they were recorded."""
        now = self._clock.monotonic()
        if not partition.follower_fetched(replica, offset, broker_epoch, now, log_start_offset):
            return False
        if partition.may_join(replica) and self._has_rested(partition, replica, now):
            self._propose_to_add(partition, replica)
        return True

    def _has_rested(self, partition: Partition, replica: int, now: float) -> bool:
        leadership = partition.leadership
        return leadership is not None and now - leadership.followers[replica].refused_at >= REST_AFTER_REFUSAL

    def heard_from(
        self, replica: int, *, anew: bool, named: Collection[Partition], forgotten: Iterable[Partition]
    ) -> None:
        """A follower's fetch, with these offsets.

        Partitions that it does not name are unchanged, unless it has `forgotten` them or begins `anew` without them: a
        failed log on the follower must not count as caught up.
        """
        self._heard_from[replica] = self._clock.monotonic()
        if anew:
            kept = set(named)
            forgotten = [partition for partition in self._led if partition not in kept]
        for partition in forgotten:
            partition.follower_left(replica)

    async def _watch_followers(self) -> None:
        while True:
            await self._clock.sleep(self._longest_lag / 2)
            self.resign_failed()
            self.leave_failed()
            self.shrink_isrs()
            self.grow_isrs()

    def resign_failed(self) -> None:
        """Let another broker lead a partition whose log failed here; with no other in sync, end the leader epoch all the same."""
        for partition in self._led:
            leadership = partition.leadership
            if leadership is not None and partition.log.offline_reason is not None:
                others = leadership.isr - {self._broker_id}
                if others or partition.needs_new_term:
                    self.isr_changes.propose(partition, others)

    def leave_failed(self) -> None:
        """Report replicas with a failed log to their leaders, which would not notice it on a quiet partition."""
        for partition, leader in self._followed.items():
            fetcher = self._fetchers.get(leader)
            if fetcher is not None and partition.log.offline_reason is not None:
                fetcher.ask_again(partition)

    def shrink_isrs(self) -> None:
        """Propose to remove followers that have not caught up for replica.lag.time.max.ms."""
        now = self._clock.monotonic()
        for partition in self._led:
            leadership = partition.leadership
            if leadership is None or leadership.proposed is not None:
                continue
            if partition.log.offline_reason is not None:
                continue  # No follower can catch up with a failed log, so none of them is removed for it.
            late = leadership.out_of_sync(
                partition.log.log_end_offset, now, self._longest_lag, self._heard_from
            )
            if late:
                self.isr_changes.propose(partition, leadership.isr - late)

    def grow_isrs(self) -> None:
        """Propose followers again that have caught up and were refused: a quiet partition is not fetched again."""
        now = self._clock.monotonic()
        for partition in self._led:
            leadership = partition.leadership
            if leadership is None:
                continue
            # The one refused last comes last: followers that are refused every time must not block the others.
            for replica in sorted(
                leadership.followers, key=lambda each: leadership.followers[each].refused_at
            ):
                heard = now - self._heard_from.get(replica, float("-inf")) <= self._longest_lag
                if heard and partition.may_join(replica):
                    self._propose_to_add(partition, replica)
                    break

    def _propose_to_add(self, partition: Partition, replica: int) -> None:
        if partition.leadership is not None:
            self.isr_changes.propose(partition, partition.leadership.isr | {replica})
            partition.isr_changed()

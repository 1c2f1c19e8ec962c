"""Where partitions begin and end, and when a group's next record was written: from this broker's replicas, and in the background
from other brokers.

What only another broker knows is asked for after a scrape that wanted it, and shown by the next one; nothing is asked while nobody
scrapes. Times of records are read in a thread, for so long in one scrape and not longer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import Executor

from headrace.clock import Clock
from headrace.server.cluster.peers import Peers
from headrace.server.metrics.next_record import first_timestamp, written_at
from headrace.server.replica.partition import Partition
from headrace.server.replica.replicas import Replicas
from headrace.wire.errors import KafkaError
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

log = logging.getLogger(__name__)

Key = tuple[str, int]
Place = tuple[str, int, int]
"""(topic, partition, offset)"""

READ_SECONDS = 0.02
"""CPU time for reading times of records from this broker's logs, for one scrape."""
WAIT_SECONDS = 1.0
"""How long a scrape waits for that at most: a disk may be slow."""
FORGET_SECONDS = 120.0
"""How long what another broker said is shown."""
MOST_FETCHED = 200
"""Records fetched from other brokers after one scrape."""
CALL_SECONDS = 5.0
LATEST, EARLIEST = -1, -2
CONSUMER, READ_COMMITTED = -1, 1
LIST_OFFSETS_VERSION, FETCH_VERSION = 6, 12


class Ends:
    def __init__(self, replicas: Replicas, peers: Peers, disk: Executor, clock: Clock) -> None:
        self._replicas = replicas
        self._peers = peers
        self._disk = disk
        self._clock = clock
        self._remote: dict[Key, tuple[int, int, float]] = {}
        """(first offset, end, when it was asked)"""
        self._written: dict[Place, int | None] = {}
        """When the next record from there on was written; None when there is none to be read."""
        self._turn = 0
        """Where reading begins in the next scrape, in case there is no time for all."""
        self._wanted: set[Key] = set()
        """Partitions of which the last scrape needed the bounds, and no replica is here."""
        self._wanted_times: set[Place] = set()
        self._asking: asyncio.Task[None] | None = None
        self._reading: asyncio.Future[int] | None = None
        """The thread's work that was not done in time."""

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    def bounds(self, topic: str, index: int) -> tuple[int, int] | None:
        """(first offset, end for consumers); None when it is not known, or not yet."""
        held = self._held((topic, index))
        if held is not None:
            return held.log.log_start_offset, held.log.high_watermark
        self._wanted.add((topic, index))
        known = self._remote.get((topic, index))
        if known is None or self._clock.monotonic() - known[2] > FORGET_SECONDS:
            return None
        return known[0], known[1]

    def written(self, topic: str, index: int, start: int) -> int | None:
        """The timestamp of the record that is next at `start`; None when it is not known, or there is none to be read."""
        return self._written.get((topic, index, start))

    async def look_up(self, places: set[Place]) -> None:
        """Read the times of the next records at `places` as far as they are here; ask for the others afterwards."""
        if self._reading is not None:
            # A disk is slow. One thread at a time waits for it, and nobody else changes what it writes to.
            await asyncio.wait((self._reading,), timeout=WAIT_SECONDS)
            if not self._reading.done():
                return
            self._reading = None
        self._written = {place: at for place, at in self._written.items() if place in places}
        here: list[tuple[Place, Partition]] = []
        self._wanted_times = set()
        for place in sorted(places):
            # A place with nothing to read is looked at again: a transaction may have ended.
            if self._written.get(place) is not None:
                continue
            held = self._held(place[:2])
            if held is None:
                self._wanted_times.add(place)
            else:
                here.append((place, held))
        if here:
            first = self._turn % len(here)
            here = here[first:] + here[:first]
            reading = asyncio.get_running_loop().run_in_executor(self._disk, _read, here, self._written)
            self._reading = reading
            await asyncio.wait((reading,), timeout=WAIT_SECONDS)
            self._turn = first + (reading.result() if reading.done() else 0)
            if reading.done():
                self._reading = None

    def ask_others(self) -> None:
        """In the background, for the next scrape."""
        wanted, self._wanted = self._wanted, set()
        times = self._wanted_times
        if (wanted or times) and (self._asking is None or self._asking.done()):
            self._asking = asyncio.get_running_loop().create_task(self._ask(wanted, times))

    def _held(self, key: Key) -> Partition | None:
        try:
            found = self._replicas.find(key[0].encode(), key[1], by_id=False)
        except KafkaError:
            return None
        return found if found.log.offline_reason is None else None

    async def _ask(self, wanted: set[Key], times: set[Place]) -> None:
        by_leader: dict[int, tuple[set[Key], list[Place]]] = defaultdict(lambda: (set(), []))
        for key in wanted:
            leader = self._leader(key)
            if leader is not None:
                by_leader[leader][0].add(key)
        for place in times:
            leader = self._leader(place[:2])
            if leader is not None:
                by_leader[leader][1].append(place)
        for leader_id, (bounds, places) in by_leader.items():
            try:
                await self._ask_bounds(leader_id, bounds)
                for place in places[:MOST_FETCHED]:
                    self._written[place] = await self._fetch(leader_id, place)
            except (KafkaError, OSError) as error:
                log.debug("broker %d does not say where its partitions end: %s", leader_id, error)
        oldest = self._clock.monotonic() - FORGET_SECONDS
        self._remote = {key: known for key, known in self._remote.items() if known[2] > oldest}

    def _leader(self, key: Key) -> int | None:
        """The other broker that leads a partition."""
        state = self._replicas.image.partition(*key)
        other = state is not None and state.leader >= 0 and state.leader != self._replicas.broker_id
        return state.leader if state is not None and other else None

    async def _ask_bounds(self, leader: int, keys: Iterable[Key]) -> None:
        first = await self._list(leader, keys, EARLIEST)
        for key, end in (await self._list(leader, keys, LATEST)).items():
            if key in first:
                self._remote[key] = first[key], end, self._clock.monotonic()

    async def _list(self, leader: int, keys: Iterable[Key], timestamp: int) -> dict[Key, int]:
        topics: dict[str, ListOffsetsTopic] = {}
        for name, index in keys:
            topic = topics.setdefault(name, ListOffsetsTopic(name))
            topic.partitions.append(ListOffsetsPartition(index, -1, timestamp))
        request = ListOffsetsRequest(CONSUMER, topics=list(topics.values()))
        response = await self._peers.call(leader, request, LIST_OFFSETS_VERSION, CALL_SECONDS)
        return {
            (topic.name, each.partition_index): each.offset
            for topic in response.topics
            for each in topic.partitions
            if not each.error_code
        }

    async def _fetch(self, leader: int, place: Place) -> int | None:
        topic_name, index, start = place
        partition = FetchPartition(index, fetch_offset=start, partition_max_bytes=1)
        asked = FetchTopic(topic_name, partitions=[partition])
        request = FetchRequest(
            replica_id=CONSUMER,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            isolation_level=READ_COMMITTED,
            topics=[asked],
        )
        response = await self._peers.call(leader, request, FETCH_VERSION, CALL_SECONDS)
        for topic in response.responses:
            for each in topic.partitions:
                if not each.error_code and each.records:
                    aborted = [(one.producer_id, one.first_offset) for one in each.aborted_transactions or ()]
                    return first_timestamp(each.records, start, aborted)
        return None


def _read(here: list[tuple[Place, Partition]], found: dict[Place, int | None]) -> int:
    """In a thread; how many there was time for."""
    until = time.thread_time() + READ_SECONDS
    for count, (place, partition) in enumerate(here, 1):
        try:
            found[place] = written_at(partition.log, place[2])
        except (KafkaError, OSError):
            found.pop(place, None)  # It moved away, or was truncated, meanwhile.
        if time.thread_time() > until:
            return count
        time.sleep(0)
    return len(here)

"""Readers: every partition from its beginning, in order; what was given once at an offset stays there."""

from __future__ import annotations

from headrace.wire.batch import check_crc, iterate_batches
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.records import decode_records
from tests.simulation.client import Away, Client, Refused, check
from tests.simulation.history import History, Place

EARLIEST, LATEST = -2, -1


async def list_offset(client: Client, place: Place, timestamp: int, isolation: int = 0) -> int:
    address = await client.leader(*place)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(place[0], [ListOffsetsPartition(partition_index=place[1], timestamp=timestamp)])
        ],
    )
    try:
        found = (await client.call(address, request, 6)).topics[0].partitions[0]
        check(found.error_code)
    except (Away, Refused):
        client.forget(*place)
        raise
    return found.offset


def records_of(
    reply: PartitionData, offset: int, committed_only: bool
) -> tuple[list[tuple[int, bytes | None, bytes | None]], int]:
    """The records from `offset` on, as (offset, key, value), and where to go on."""
    aborted = sorted(reply.aborted_transactions or (), key=lambda each: each.first_offset)
    open_aborted: set[int] = set()
    found: list[tuple[int, bytes | None, bytes | None]] = []
    data = memoryview(reply.records or b"")
    for position, header in iterate_batches(data):
        batch = data[position : position + header.size]
        check_crc(batch, header)
        while aborted and aborted[0].first_offset <= header.last_offset:
            open_aborted.add(aborted.pop(0).producer_id)
        if header.is_control:
            open_aborted.discard(header.producer_id)
        elif not (committed_only and header.is_transactional and header.producer_id in open_aborted):
            found += [
                (record.offset, record.key, record.value)
                for record in decode_records(batch, header)
                if record.offset >= offset
            ]
        offset = max(offset, header.next_offset)
    return found, offset


class Reader:
    """Fetches what one broker leads in one request; one task a broker would be quicker, this one takes turns."""

    def __init__(self, client: Client, history: History, places: list[Place], committed_only: bool) -> None:
        self.client = client
        self.positions: dict[Place, int] = dict.fromkeys(places, 0)
        self._history = history
        self._committed_only = committed_only
        self._high: dict[tuple[Place, int], int] = {}
        """By partition and leader epoch: within one epoch the high watermark never falls."""

    async def run(self) -> None:
        while True:
            moved = await self.turn()
            await self.client.sleep(0.05 if moved else 0.25)

    async def turn(self) -> bool:
        """Ask each broker once; whether there was anything."""
        by_leader: dict[tuple[str, int], list[Place]] = {}
        for place in self.positions:
            try:
                by_leader.setdefault(await self.client.leader(*place), []).append(place)
            except (Away, Refused):
                continue
        moved = False
        for address, places in by_leader.items():
            try:
                moved |= await self._fetch(address, places)
            except Away:
                for place in places:
                    self.client.forget(*place)
        return moved

    async def _fetch(self, address: tuple[str, int], places: list[Place]) -> bool:
        topics: dict[str, list[FetchPartition]] = {}
        epochs = {place: self.client.epochs.get(place, -1) for place in places}
        for place in places:
            asked = FetchPartition(
                partition=place[1],
                current_leader_epoch=epochs[place],
                fetch_offset=self.positions[place],
                partition_max_bytes=64 * 1024,
            )
            topics.setdefault(place[0], []).append(asked)
        request = FetchRequest(
            max_wait_ms=300,
            min_bytes=1,
            max_bytes=256 * 1024,
            isolation_level=int(self._committed_only),
            topics=[FetchTopic(topic=topic, partitions=asked) for topic, asked in topics.items()],
        )
        reply = await self.client.call(address, request, 11)
        moved = False
        for topic in reply.responses:
            for partition in topic.partitions:
                place = topic.topic, partition.partition_index
                if place in self.positions:
                    moved |= await self._take(place, partition, epochs[place])
        return moved

    async def _take(self, place: Place, reply: PartitionData, epoch: int) -> bool:
        client, world = self.client, self.client.world
        if reply.error_code:
            client.forget(*place)
            if reply.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._out_of_range(place)
            return False
        known = self._high.get((place, epoch), -1)
        if reply.high_watermark < known:
            world.trouble(
                f"{client.name}: the high watermark of {place} in epoch {epoch} went from {known} back to "
                f"{reply.high_watermark}"
            )
        self._high[place, epoch] = reply.high_watermark
        position = self.positions[place]
        found, self.positions[place] = records_of(reply, position, self._committed_only)
        seen = self._history.read[client.name][place]
        for offset, _, value in found:
            if value is not None and seen.setdefault(offset, value) != value:
                world.trouble(f"{client.name}: {place} offset {offset} was {seen[offset]!r}, is {value!r}")
            if offset >= reply.high_watermark:
                world.trouble(f"{client.name}: was given {place} offset {offset} above the high watermark")
        if found:
            self._history.last_success[client.name] = world.now
        return self.positions[place] > position

    async def _out_of_range(self, place: Place) -> None:
        """Legal only where records were deleted."""
        position = self.positions[place]
        try:
            start = await list_offset(self.client, place, EARLIEST)
        except (Away, Refused):
            return
        if position < start <= self._history.deleted.get(place, 0):
            self.positions[place] = start
        elif position < start:
            self.client.world.trouble(f"{self.client.name}: {place} begins at {start}, {position} was lost")
        else:
            end = None
            try:
                end = await list_offset(self.client, place, LATEST)
            except (Away, Refused):
                return
            if end < position:
                self.client.world.trouble(f"{self.client.name}: {place} ends at {end}, {position} was read")

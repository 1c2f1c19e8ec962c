"""The copy of a backlog: exactly its records, in the same partitions and the same order, with key, time and headers.

Each carries its offset in the original, so the end of the copy says where to continue: after a crash nothing is repeated or
missed. One copies at a time, and a record that cannot be written ends the copying before any that follows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from headrace.backlog import register
from headrace.backlog.divert import Divert, Places
from headrace.backlog.site import Site
from headrace.client.dead_letters import FOR_ANY_SIZE
from headrace.client.errors import ClientError
from headrace.client.exclusive import exclusive
from headrace.client.producer import Producer
from headrace.client.record import Record, RecordMetadata, TopicPartition
from headrace.client.scan import scan

OFFSET = "headrace.backlog.offset"
"""Header: where the record lies in the original."""
_AT_ONCE = 2_000
_PAUSE = 0.5
_SESSION_MS = 10_000
"""After so long a killed one no longer keeps the turn."""
_ROOM_FOR_HEADER, _MOST_BYTES = 64 * 1024, 2**31 - 1
_GAPLESS = {
    **FOR_ANY_SIZE,
    "enable.gapless.guarantee": True,
    "delivery.timeout.ms": 2_147_483_647,
    "linger.ms": 5,
    "log_level": 3,
}


@dataclass(frozen=True, slots=True)
class Copied:
    next: Places
    """Where the copying goes on in the original."""
    ends: Places
    """Where the copy ends."""


def copy(site: Site, divert: Divert, copied: Callable[[int], None]) -> None:
    """Returns when the copy is complete, which waits for transactions that are open before the cut."""
    turn = f"headrace.backlog.{divert.copy}"
    with exclusive(
        site.connection, turn, register.TOPIC, f"copying the backlog of {divert.topic}", _SESSION_MS
    ):
        while not _copy_what_there_is(site, divert, copied):
            time.sleep(_PAUSE)


def longest_batch(site: Site, divert: Divert) -> int:
    """The max.message.bytes of the copy: with their header, records may be longer than in the original."""
    return min(_MOST_BYTES, site.longest_batch(divert.topic) + _ROOM_FOR_HEADER)


def copied(site: Site, divert: Divert) -> Copied:
    """How far the copy has come."""
    ends, places = site.ends(divert.copy), dict(divert.before)
    last = {TopicPartition(divert.copy, number): end - 1 for number, end in ends.items() if end > 0}
    for record in scan(site.connection, last):
        places[record.partition] = original_offset(record) + 1
    return Copied(places, ends)


def places_in_original(site: Site, divert: Divert) -> Places:
    """For each partition the first record of the backlog that its group has not handled; the cut where there is none."""
    so_far = copied(site, divert)
    reached = site.starts(divert.backlog_group, divert.copy)
    stable = site.ends(divert.topic, read_committed=True)
    starts = {
        TopicPartition(divert.copy, number): reached[number]
        for number, end in so_far.ends.items()
        if reached[number] < end
    }
    ends = {each: start + 1 for each, start in starts.items()}
    unhandled = {
        record.partition: original_offset(record) for record in scan(site.connection, starts, ends=ends)
    }
    rest = {
        number: so_far.next[number]
        for number, cut in divert.cut.items()
        if number not in unhandled and so_far.next[number] < cut
    }
    following = site.next_records(divert.topic, rest)
    places = {}
    for number, cut in divert.cut.items():
        if number in unhandled:
            places[number] = unhandled[number]
            continue
        record = following.get(number)
        in_doubt = record is None and stable[number] < cut  # an open transaction
        uncopied = number in rest and (in_doubt or (record is not None and record < cut))
        places[number] = so_far.next[number] if uncopied else cut
    return places


def original_offset(record: Record[bytes, bytes]) -> int:
    value = record.header(OFFSET)
    if value is None or not value.isdigit():
        raise ClientError(
            f"{record.topic}-{record.partition}@{record.offset} was not copied from the backlog: somebody else has written to "
            f"the copy, so how far it goes is unknown"
        )
    return int(value)


def _copy_what_there_is(site: Site, divert: Divert, tell: Callable[[int], None]) -> bool:
    """True when nothing is left to copy. A reader of committed records sees nothing after the start of an open transaction."""
    stable = site.ends(divert.topic, read_committed=True)
    starts = divert.at(copied(site, divert).next)
    waiting: list[Future[RecordMetadata]] = []
    with Producer[bytes, bytes]({**site.connection, **_GAPLESS}) as producer:
        for record in scan(site.connection, dict(starts), ends=divert.at(divert.cut)):
            waiting.append(
                producer.send(
                    divert.copy,
                    record.raw_value,
                    key=record.raw_key,
                    partition=record.partition,
                    headers=[*record.headers, (OFFSET, str(record.offset).encode())],
                    timestamp=record.timestamp if record.timestamp >= 0 else None,
                )
            )
            if len(waiting) >= _AT_ONCE:
                tell(_settled(waiting))
        tell(_settled(waiting))
    return all(stable[number] >= cut for number, cut in divert.cut.items())


def _settled(waiting: list[Future[RecordMetadata]]) -> int:
    """Returns when all of them are written; how many."""
    count = len(waiting)
    for each in waiting:
        each.result()
    waiting.clear()
    return count

"""The verdict: what clients were told and given, and what the disks hold at the end, compared. Each problem is one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.wire.batch import check_crc, iterate_batches
from headrace.wire.records import decode_records
from tests.simulation.cluster import Broker
from tests.simulation.disk import Directory, Inode
from tests.simulation.history import History, Place

if TYPE_CHECKING:
    from tests.simulation.scenario import Scenario

Images = dict[int, dict[int, str]]
SHOWN = 3


@dataclass(slots=True)
class Replica:
    start: int = -1
    end: int = 0
    batches: dict[int, bytes] = field(default_factory=dict)
    records: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    transactional: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    """Offsets of records whose transaction was aborted, or is open."""
    problems: list[str] = field(default_factory=list)


def read_replica(broker: Broker, place: Place) -> Replica | None:
    directory = broker.host.disk.root.entries.get("data")
    assert isinstance(directory, Directory)
    found = directory.entries.get(f"{place[0]}-{place[1]}")
    if not isinstance(found, Directory):
        return None
    replica = Replica()
    open_by_producer: dict[int, list[int]] = {}
    for name in sorted(found.entries):
        inode = found.entries[name]
        if not name.endswith(".log") or not isinstance(inode, Inode):
            continue
        data = bytes(inode.data)
        reached = 0
        for position, header in iterate_batches(data):
            batch = data[position : position + header.size]
            reached = position + header.size
            try:
                check_crc(batch, header)
            except Exception as error:
                replica.problems.append(f"{name} at {position}: {error}")
                continue
            if replica.batches and header.base_offset < replica.end:
                replica.problems.append(
                    f"{name} at {position}: offset {header.base_offset} after {replica.end}"
                )
            replica.end = header.next_offset
            replica.batches[header.base_offset] = batch
            if header.is_control:
                (marker,) = decode_records(batch, header)[:1] or (None,)
                offsets = open_by_producer.pop(header.producer_id, [])
                if marker is not None and marker.key is not None and marker.key[2:4] == b"\0\0":
                    replica.aborted.update(offsets)
                continue
            for record in decode_records(batch, header):
                replica.records[record.offset] = (record.key, record.value)
                if header.is_transactional:
                    replica.transactional.add(record.offset)
                    open_by_producer.setdefault(header.producer_id, []).append(record.offset)
        if reached < len(data):
            replica.problems.append(f"{name}: {len(data) - reached} bytes after the last batch")
    replica.start = min(replica.batches, default=-1)
    for offsets in open_by_producer.values():
        replica.aborted.update(offsets)
    return replica


def _some(what: str, found: list[str]) -> Iterator[str]:
    if found:
        more = f" … and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"{what} ({len(found)}): {'; '.join(found[:SHOWN])}{more}"


def all_of(scenario: Scenario) -> Iterator[str]:
    history = scenario.history
    replicas: dict[Place, dict[int, Replica]] = {}
    for place in scenario.places:
        replicas[place] = {
            number: replica
            for number, broker in scenario.cluster.brokers.items()
            if (replica := read_replica(broker, place)) is not None and number in _replicas(scenario, place)
        }
    truth = {place: max(held.values(), key=lambda each: each.end) for place, held in replicas.items() if held}
    compacted = {place for place in scenario.places if place[0] == "keyed"}
    yield from identical(replicas, compacted)
    yield from nothing_lost(history, truth, compacted)
    yield from nothing_twice_and_in_order(history, truth, compacted)
    yield from readers_agree(history, truth, compacted)
    yield from transactions_whole(history, truth)
    yield from copied_once(history, truth)
    yield from compacted_right(history, truth, compacted)
    yield from one_history(scenario)


def _replicas(scenario: Scenario, place: Place) -> tuple[int, ...]:
    for broker in scenario.cluster.brokers.values():
        if broker.node is not None:
            topic = broker.node.cluster.image.topics.get(place[0])
            if topic is not None:
                return tuple(topic.partitions[place[1]].replicas)
    return ()


def identical(replicas: dict[Place, dict[int, Replica]], compacted: set[Place]) -> Iterator[str]:
    problems = []
    for place, held in replicas.items():
        for number, replica in held.items():
            problems += [f"{place} on broker {number}: {each}" for each in replica.problems]
        if place in compacted:
            continue
        first, *others = sorted(held)
        for other in others:
            mine, theirs = held[first], held[other]
            start = max(mine.start, theirs.start)
            for offset in sorted(mine.batches.keys() | theirs.batches.keys()):
                if offset >= start and mine.batches.get(offset) != theirs.batches.get(offset):
                    problems.append(f"{place} on {first} and {other} differ from offset {offset} on")
                    break
    yield from _some("replicas differ", problems)


def nothing_lost(history: History, truth: dict[Place, Replica], compacted: set[Place]) -> Iterator[str]:
    lost = []
    for place, told in history.acknowledged.items():
        if place in compacted:
            continue
        for offset, value in told.items():
            found = truth[place].records.get(offset)
            if offset < history.deleted.get(place, 0) and found is None:
                continue
            if found is None or found[1] != value:
                lost.append(f"{place} offset {offset}: {value!r} was acknowledged, there is {found}")
    for transaction in history.transactions:
        if transaction.outcome != "committed":
            continue
        for place, written in transaction.written.items():
            for offset, value in written:
                found = truth[place].records.get(offset)
                if offset >= 0 and (found is None or found[1] != value):
                    lost.append(f"{place} offset {offset}: {value!r} was acknowledged, there is {found}")
    yield from _some("acknowledged records are lost", lost)


def nothing_twice_and_in_order(
    history: History, truth: dict[Place, Replica], compacted: set[Place]
) -> Iterator[str]:
    twice, wrong, unknown = [], [], []
    for place, replica in truth.items():
        seen: dict[bytes, int] = {}
        last: dict[bytes, int] = {}
        for offset, (_, value) in sorted(replica.records.items()):
            if value is None:
                continue
            if value not in history.sent:
                unknown.append(f"{place} offset {offset}: {value!r}")
            if value in seen and offset not in replica.aborted and seen[value] not in replica.aborted:
                twice.append(f"{place}: {value!r} at {seen[value]} and {offset}")
            if offset not in replica.aborted:
                seen[value] = offset
            if value[:2] in (b"T ", b"C ") or place in compacted:
                continue
            lane, number = value.split(b" ")[:2]
            before = last.get(lane)
            if before is not None and int(number) != before + 1:
                wrong.append(f"{place} offset {offset}: {lane.decode()} {int(number)} after {before}")
            last[lane] = int(number)
    yield from _some("records are in the log twice", twice)
    yield from _some("records are out of order, or some between are missing", wrong)
    yield from _some("records nobody sent", unknown)


def readers_agree(history: History, truth: dict[Place, Replica], compacted: set[Place]) -> Iterator[str]:
    vanished, dirty, skipped = [], [], []
    for reader, places in history.read.items():
        for place, seen in places.items():
            replica = truth[place]
            start = max(replica.start, history.deleted.get(place, 0))
            for offset, value in seen.items():
                found = replica.records.get(offset)
                if (found is None or found[1] != value) and not (
                    found is None and (place in compacted or offset < start)
                ):
                    vanished.append(f"{reader} read {value!r} at {place} offset {offset}, there is {found}")
                if reader == "committed-reader" and offset in replica.aborted:
                    dirty.append(f"{value!r} at {place} offset {offset}")
            if reader in ("reader", "committed-reader") and place not in compacted:
                expected = {
                    offset
                    for offset in replica.records
                    if offset >= start and not (reader == "committed-reader" and offset in replica.aborted)
                }
                skipped += [f"{reader}: {place} offset {each}" for each in sorted(expected - seen.keys())]
    yield from _some("records that were read have vanished", vanished)
    yield from _some("a reader of committed records was given others", dirty)
    yield from _some("records were not delivered", skipped)


def transactions_whole(history: History, truth: dict[Place, Replica]) -> Iterator[str]:
    torn, late = [], []
    visible: dict[Place, dict[bytes, int]] = {
        place: {
            value: offset
            for offset, (_, value) in replica.records.items()
            if value is not None and offset not in replica.aborted
        }
        for place, replica in truth.items()
    }
    for transaction in sorted(history.transactions, key=lambda each: each.ended or 1e9):
        name = f"{transaction.worker} {transaction.number}"
        found = [
            value in visible[place] for place, written in transaction.written.items() for _, value in written
        ]
        if transaction.outcome == "committed" and not all(found):
            torn.append(f"{name} was committed and {found.count(False)} of {len(found)} records are missing")
        elif transaction.outcome == "aborted" and any(found):
            torn.append(f"{name} was aborted and {found.count(True)} of {len(found)} records are there")
        elif any(found) and not all(found):
            torn.append(
                f"{name} ({transaction.outcome}): {found.count(True)} of {len(found)} records are there"
            )
    # What was committed before another transaction began lies before it.
    for place in visible:
        rows = [
            (transaction, min(visible[place][value] for _, value in transaction.written[place]))
            for transaction in history.transactions
            if transaction.outcome == "committed"
            and place in transaction.written
            and all(value in visible[place] for _, value in transaction.written[place])
        ]
        rows.sort(key=lambda row: row[1])
        latest_begin = -1.0
        for transaction, offset in rows:
            if transaction.ended and transaction.ended < latest_begin:
                late.append(f"{transaction.worker} {transaction.number} at {place} offset {offset}")
            latest_begin = max(latest_begin, transaction.began)
    yield from _some("transactions are torn", torn)
    yield from _some("transactions lie behind later ones", late)


def copied_once(history: History, truth: dict[Place, Replica]) -> Iterator[str]:
    wrong = []
    for place, replica in truth.items():
        if place[0] != "copies":
            continue
        source = truth["ledger", place[1]]
        copied: list[int] = []
        for offset, (_, value) in sorted(replica.records.items()):
            if offset in replica.aborted or value is None:
                continue
            number = int(value.split(b" ", 2)[1])
            original = source.records.get(number)
            if original is None or original[1] != value.split(b" ", 2)[2]:
                wrong.append(f"{place} offset {offset}: {value!r} is a copy of {original}")
            copied.append(number)
        expected = [offset for offset in sorted(source.records) if copied and offset <= copied[-1]]
        if copied != expected:
            difference = sorted(set(expected) ^ set(copied))
            wrong.append(f"{place}: copied once and in order would differ at {difference[:5] or 'the order'}")
    yield from _some("copies are not exactly once", wrong)


def compacted_right(history: History, truth: dict[Place, Replica], compacted: set[Place]) -> Iterator[str]:
    """Of each key the last acknowledged record is there, or a later one."""
    wrong = []
    for place in compacted:
        last: dict[bytes, tuple[int, bytes | None]] = {}
        for offset, (key, value) in sorted(truth[place].records.items()):
            if key is not None:
                last[key] = offset, value
        for key, (told, acknowledged) in history.keyed[place].items():
            offset, value = last.get(key, (-1, None))
            if offset < told or (offset == told and value != acknowledged):
                wrong.append(
                    f"{place}: {key!r} was acknowledged as {acknowledged!r} at {told}, there is {value!r} at {offset}"
                )
    yield from _some("compaction lost keys", wrong)


def one_history(scenario: Scenario) -> Iterator[str]:
    """Every broker has seen the same changes of the metadata under the same numbers."""
    differing = []
    known: dict[int, tuple[str, str]] = {}
    for broker, changes in scenario.cluster.changes.items():
        for offset, text in changes.items():
            other, seen = known.setdefault(offset, (broker, text))
            if seen != text:
                differing.append(f"change {offset}: {other} has {seen[:80]}, {broker} has {text[:80]}")
    yield from _some("brokers differ on the metadata", differing)

"""The verdict: what clients were told, what readers were given and what the brokers' files hold, compared.

Every function returns sentences, one for each way in which the cluster broke a promise; none when it kept them all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from faults.load import LEDGER, TRANSFERS, Deliveries, Member, Place, Reader, Transferrer, Worker, Writer
from faults.segments import Replica

Replicas = Mapping[Place, Mapping[int, Replica]]
"""By place, then by broker."""
SHOWN = 5


def _some(what: str, found: list[str]) -> list[str]:
    """One sentence for many of a kind, with the first of them."""
    if not found:
        return []
    more = f" … and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return [f"{what} ({len(found)}): {'; '.join(found[:SHOWN])}{more}"]


def truth(replicas: Replicas) -> dict[Place, Replica]:
    """One replica for each place, to compare everything else with; `identical` shows that any will do."""
    return {place: max(held.values(), key=lambda replica: replica.end) for place, held in replicas.items()}


def identical(replicas: Replicas) -> list[str]:
    """Every replica holds the same batches, byte for byte. The campaign has waited until all were in sync."""
    problems, broken = [], []
    for (topic, partition), held in sorted(replicas.items()):
        for number, replica in held.items():
            broken += [f"broker {number}: {each}" for each in replica.broken]
        first, *others = sorted(held)
        for other in others:
            mine, theirs = held[first].batches, held[other].batches
            differing = [
                offset for offset in mine.keys() | theirs.keys() if mine.get(offset) != theirs.get(offset)
            ]
            if differing:
                problems.append(f"{topic}-{partition} on {first} and {other} from offset {min(differing)} on")
    return _some("replicas differ", problems) + _some("segments are broken", broken)


def without_repeats(
    writers: Iterable[Writer], logs: Mapping[Place, Replica]
) -> tuple[dict[Place, Replica], int]:
    """The logs without what a pipelining client wrote again of its own accord, and how many records that were.

    When one of several requests in flight fails, librdkafka takes the answer to the next one, OUT_OF_ORDER_SEQUENCE_NUMBER, for
    a reason to raise its epoch, and sends whatever was not answered again under that epoch, where no broker can tell that it is
    there already (its issue 4953). A client with one request in flight has no such excuse.
    """
    pipelining = {writer.name for writer in writers if writer.in_flight > 1}
    cleared, repeats = {}, 0
    for place, replica in logs.items():
        records: dict[int, str] = {}
        first_epochs: dict[str, int] = {}
        for offset in sorted(replica.records):
            name = replica.records[offset]
            epoch = replica.producer_epochs.get(offset, 0)
            if first_epochs.setdefault(name, epoch) < epoch and name.partition(" ")[0] in pipelining:
                repeats += 1
            else:
                records[offset] = name
        cleared[place] = replace(replica, records=records)
    return cleared, repeats


def nothing_lost(writers: Iterable[Writer], logs: Mapping[Place, Replica]) -> list[str]:
    """What was acknowledged is in the log, at the offset the producer was told.

    It is told none (-1) of a record that it takes for written because a later one was, which the broker took as the next.
    """
    lost = []
    anywhere = {place: set(replica.records.values()) for place, replica in logs.items()}
    for writer in writers:
        for name, told in writer.acknowledged.items():
            found = logs[told.place].records.get(told.offset) if told.place in logs else None
            if found != name and not (told.offset < 0 and name in anywhere.get(told.place, ())):
                lost.append(
                    f"{name!r} acknowledged at {told.place[0]}-{told.place[1]} offset {told.offset}, there is {found!r}"
                )
    return _some("acknowledged records are lost", lost)


def nothing_twice(writers: Iterable[Writer], logs: Mapping[Place, Replica]) -> list[str]:
    twice, unknown = [], []
    sent: set[str] = set()
    for writer in writers:
        sent |= writer.sent
        twice += [f"{name!r} was acknowledged twice" for name in writer.twice]
    for (topic, partition), replica in logs.items():
        counts = Counter(replica.records.values())
        twice += [f"{name!r} in {topic}-{partition}" for name, count in counts.items() if count > 1]
        if topic == LEDGER:
            unknown += [name for name in counts if name not in sent]
    return _some("records are in the log twice", twice) + _some("records nobody sent are in the log", unknown)


def in_order(logs: Mapping[Place, Replica]) -> list[str]:
    """In every partition the numbers of each producer ascend."""
    wrong = []
    for (topic, partition), replica in logs.items():
        last: dict[str, int] = defaultdict(lambda: -1)
        for offset in sorted(replica.records):
            name, _, number = replica.records[offset].rpartition(" ")
            if int(number) <= last[name]:
                wrong.append(f"{topic}-{partition} offset {offset}: {name} {number} after {last[name]}")
            last[name] = int(number)
    return _some("records are out of order", wrong)


def readers_agree(readers: Iterable[Reader | Member], logs: Mapping[Place, Replica]) -> list[str]:
    """What anyone was ever given at an offset is what the log holds there: nothing read has vanished or changed."""
    vanished, disordered = [], []
    for reader in readers:
        vanished += [f"{reader.name} was given {each}" for each in reader.deliveries.changed]
        if isinstance(reader, Reader):
            disordered += reader.disordered
        for (topic, partition), seen in reader.deliveries.seen.items():
            records = logs[topic, partition].records
            vanished += [
                f"{reader.name} read {name!r} at {topic}-{partition} offset {offset}, there is {records.get(offset)!r}"
                for offset, name in seen.items()
                if records.get(offset) != name
            ]
    return _some("records that were read have vanished", vanished) + _some("readers went back", disordered)


def all_delivered(who: str, deliveries: Iterable[Deliveries], places: Mapping[Place, set[int]]) -> list[str]:
    """Every offset expected of each place reached at least one of these."""
    missing = []
    given = list(deliveries)
    for (topic, partition), expected in places.items():
        seen: set[int] = set()
        for each in given:
            seen |= each.seen.get((topic, partition), {}).keys()
        if expected - seen:
            missing.append(f"{len(expected - seen)} of {topic}-{partition}, first {min(expected - seen)}")
    return _some(f"{who} was not given everything", missing)


def transactions_whole(
    transferrer: Transferrer, deliveries: Deliveries, logs: Mapping[Place, Replica]
) -> tuple[list[str], dict[Place, set[int]]]:
    """A reader of committed records has all of a committed transaction and nothing of another; and what it must have."""
    places = [place for place in logs if place[0] == TRANSFERS]
    seen: dict[int, set[int]] = defaultdict(set)
    for topic, partition in places:
        for name in deliveries.seen.get((topic, partition), {}).values():
            seen[int(name.rpartition(" ")[2])].add(partition)
    whole = {partition for _, partition in places}
    wrong = [
        f"{number} was committed, partitions {sorted(whole - seen[number])} lack it"
        for number in sorted(transferrer.committed)
        if seen[number] != whole
    ]
    wrong += [f"{number} was aborted and read" for number in sorted(transferrer.aborted) if seen[number]]
    wrong += [
        f"{number} is in partitions {sorted(seen[number])} only"
        for number in sorted(transferrer.unknown)
        if seen[number] not in (set(), whole)
    ]
    expected = {
        place: {
            offset
            for offset, name in logs[place].records.items()
            if int(name.rpartition(" ")[2]) in transferrer.committed
        }
        for place in places
    }
    return _some("transactions are torn", wrong), expected


def commits_kept(members: Iterable[Member], committed: Mapping[Place, int]) -> list[str]:
    """No committed offset of the group lies behind one whose commit was answered."""
    behind = []
    for member in members:
        for place, offset in member.commits.items():
            if committed.get(place, -1) < offset:
                behind.append(
                    f"{member.name} was answered {offset} for {place[0]}-{place[1]}, kept is {committed.get(place)}"
                )
    return _some("committed offsets went back", behind)


def troubles(workers: Iterable[Worker]) -> list[str]:
    """What clients were told that a cluster which keeps its promises never tells."""
    return _some("clients were told of trouble", [each for worker in workers for each in worker.troubles])

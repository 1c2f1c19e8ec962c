"""What would help a group that is behind, from measured rates: each piece of advice with its arithmetic and the command for it.

Pure: `advise` judges `Facts`; `facts.py` measures them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from headrace.backlog.samples import Sample
from headrace.client.durations import show_seconds
from headrace.client.lag import GroupLag, PartitionLag
from headrace.client.lag_states import LagState
from headrace.client.record import TopicPartition

_HOT, _SLOW = 2.0, 0.5
"""A partition is hot with so many times what the others get; a member is slow with so much of what the others read."""
_KEY_SHARE = 0.2
_FEW_RECORDS, _SMALL_BATCH, _ENOUGH_BATCHES = 5.0, 16_384, 20
_DAY, _HOUR = 86_400.0, 3_600.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured of one group, over `window` seconds."""

    lag: GroupLag
    window: float
    partitions: Mapping[str, int]
    """How many partitions each topic has."""
    idle_members: int = 0
    """Members without a partition."""
    retention: Mapping[str, tuple[float | None, int | None]] = field(default_factory=dict)
    """Seconds and bytes that each topic keeps; None without a limit."""
    samples: Mapping[TopicPartition, Sample] = field(default_factory=dict)
    """Of the partitions that are furthest behind, or stand still."""


@dataclass(frozen=True, slots=True)
class Advice:
    kind: str
    sentence: str
    """What helps."""
    arithmetic: str
    """Why, in numbers."""
    command: str

    def as_json(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "advice": self.sentence,
            "arithmetic": self.arithmetic,
            "command": self.command,
        }


def advise(facts: Facts, within: float) -> list[Advice]:
    """The most pressing first. `within` is how many seconds it may take to catch up."""
    lag = facts.lag
    if lag.records == 0:
        return []
    if lag.state == LagState.GONE:
        return [*_retention(facts), _start(facts)]
    standing = list(_standing(facts))
    if standing and not _moves(facts):
        return [*_retention(facts), *standing]
    if is_draining_in_time(lag, within):
        return [*_retention(facts)]
    return [
        *_retention(facts),
        *standing,
        *_slow_members(facts),
        *_hot_partitions(facts),
        *_parallelism(facts, within),
        *_batches(facts),
        _divert(facts, within),
    ]


def is_draining_in_time(lag: GroupLag, within: float) -> bool:
    left = lag.seconds_to_catch_up
    return lag.state in (LagState.OK, LagState.DRAINING) and left is not None and left <= within


# What keeps records from being read at all.


def _start(facts: Facts) -> Advice:
    group = facts.lag.group_id
    return Advice(
        "no-members",
        f"Start the consumers of {group}: it has no members.",
        f"{facts.lag.records:,} unread, and nobody reads them.",
        f"start your consumer with group.id={group}, or 'headrace consume {_topic(facts)} --group {group}' to look at the records",
    )


def _standing(facts: Facts) -> Iterator[Advice]:
    """Partitions whose offset does not move though somebody has them: a record that is not handled, or a member that hangs."""
    group = facts.lag.group_id
    moving = {
        each.member.member_id for each in facts.lag.partitions if each.member is not None and each.rate_out
    }
    for each in facts.lag.partitions:
        if not _stands(each):
            continue
        place, offset = each.partition, _next_offset(facts, each)
        found = facts.samples.get(place, Sample()).first
        at = (
            f"the record at offset {offset}"
            if found is None
            else f"the record at offset {found.offset} ({_shown(found.key)})"
        )
        who = "" if each.member is None else f" of {each.member.client_id} at {each.member.host.lstrip('/')}"
        skip = 1 + (offset if found is None else found.offset)
        if _moves(facts):
            or_else = ""
            if each.member is not None and each.member.member_id in moving:
                or_else = " Unless its client serves its other partitions first, which it does get on with."
            yield Advice(
                "poison-record",
                f"Look at {at} of {place}: the group gets past others but not past this one{who}.",
                f"{'nothing committed yet, at' if each.committed is None else 'committed'} offset {offset} for {show_seconds(facts.window)}, with {each.records:,} records unread behind it.{or_else}",
                f"headrace consume {place.topic} --partition {place.partition} --offset {offset} --max 1   (to step over it, stop the group, "
                f"then: headrace groups reset-offsets {group} --topic {place.topic}:{place.partition} --to-offset {skip} --execute)",
            )
        else:
            yield Advice(
                "stuck",
                f"Look at what the member{who} does at {at} of {place}: no partition of the group has moved.",
                f"{facts.lag.members or 0} members, and nothing committed for {show_seconds(facts.window)}: a handler that hangs, a service "
                "that it waits for, a record that fails for ever, or commits that are further apart than the look (--window).",
                f"headrace consume {place.topic} --partition {place.partition} --offset {offset} --max 1",
            )


def _stands(each: PartitionLag) -> bool:
    """A member has it and gets nowhere: also where the very first record is not handled, and nothing was ever committed."""
    at_the_start = each.committed is None and each.member is not None and each.rate_out == 0
    return each.state == LagState.STALLED or (each.records > 0 and at_the_start)


def _moves(facts: Facts) -> bool:
    return any(each.rate_out for each in facts.lag.partitions)


# What is about to be lost.


def _retention(facts: Facts) -> Iterator[Advice]:
    lag = facts.lag
    worst: dict[str, PartitionLag] = {}
    for each in lag.partitions:
        if each.seconds_until_loss is None:
            continue
        catch_up = each.seconds_to_catch_up
        if each.seconds_until_loss < max(_HOUR, _DAY if catch_up is None else 1.2 * catch_up):
            known = worst.get(each.partition.topic)
            if known is None or each.seconds_until_loss < (known.seconds_until_loss or 0):
                worst[each.partition.topic] = each
    for topic, each in worst.items():
        seconds, size = facts.retention.get(topic, (None, None))
        left, needed = each.seconds_until_loss or 0.0, each.seconds_to_catch_up
        why = (
            f"the oldest unread record of {each.partition} may be deleted in {show_seconds(left)}, and catching up takes "
            f"{'longer than is known' if needed is None else show_seconds(needed)}."
        )
        if seconds is not None:
            wanted = max(2 * seconds, (each.seconds or 0) + 1.5 * (needed or _DAY))
            setting = f"retention.ms={math.ceil(wanted / _HOUR) * 3_600_000}"
        elif size is not None:
            setting = f"retention.bytes={2 * size}"
        else:
            continue
        yield Advice(
            "retention",
            f"Keep the records of {topic} for longer until the group has caught up.",
            why,
            f"headrace configs alter topic {topic} --set {setting}",
        )


# What makes it faster.


def _slow_members(facts: Facts) -> Iterator[Advice]:
    rates: dict[str, list[PartitionLag]] = {}
    for each in facts.lag.partitions:
        if each.member is not None and each.records and each.rate_out is not None:
            rates.setdefault(each.member.member_id, []).append(each)
    totals = {member: sum(each.rate_out or 0 for each in read) for member, read in rates.items()}
    for member, read in rates.items():
        others = [rate for other, rate in totals.items() if other != member]
        if not others or totals[member] >= _SLOW * median(others):
            continue
        who = read[0].member
        if who is not None:
            yield Advice(
                "slow-member",
                f"Look at the machine of {who.client_id} at {who.host.lstrip('/')}: it reads slower than the other members.",
                f"{totals[member]:,.0f} records/s, the others {median(others):,.0f} each.",
                f"headrace groups describe {facts.lag.group_id} --members   (restart that member; its partitions move to others meanwhile)",
            )


def _hot_partitions(facts: Facts) -> Iterator[Advice]:
    by_topic: dict[str, list[PartitionLag]] = {}
    for each in facts.lag.partitions:
        by_topic.setdefault(each.partition.topic, []).append(each)
    for topic, partitions in by_topic.items():
        if len(partitions) < 2:
            continue
        for each in partitions:
            others = [other for other in partitions if other is not each]
            mean = sum(other.rate_in or 0 for other in others) / len(others)
            unread = sum(other.records for other in others) / len(others)
            arriving = (each.rate_in or 0) > _HOT * mean and (each.rate_in or 0) > (each.rate_out or 0)
            behind = not each.rate_in and each.records > _HOT * unread
            if each.records and (arriving or behind):
                yield _hot(facts, each, topic, mean, unread, arriving)


def _hot(facts: Facts, each: PartitionLag, topic: str, mean: float, unread: float, arriving: bool) -> Advice:
    found = facts.samples.get(each.partition, Sample())
    commonest = found.commonest_key
    load = (
        f"{each.partition} gets {each.rate_in or 0:,.0f} records/s, the others {mean:,.0f} each"
        if arriving
        else f"{each.partition} has {each.records:,} records unread, the others {unread:,.0f} each"
    )
    if commonest is not None and commonest[1] >= _KEY_SHARE:
        key, share = commonest
        return Advice(
            "hot-key",
            f"Split the key {_text(key)} of {topic}: neither more members nor more partitions help, since one key stays in one partition.",
            f"{load}; {share:.0%} of {len(found.records):,} unread records there have this key.",
            f"have producers add a suffix to it (such as {_text(key)}#0 to {_text(key)}#7) where order within it is not needed; "
            f"'headrace consume {topic} --partition {each.partition.partition} --offset {_next_offset(facts, each)} --max 20' shows them",
        )
    return Advice(
        "slow-partition",
        f"Spread the records of {topic} better: one partition has more than its share.",
        f"{load}; no single key has {_KEY_SHARE:.0%} of {len(found.records):,} unread records there.",
        f"headrace partitioner --help   (which key goes where; producers that set the partition themselves, or few keys, do this to {topic})",
    )


def _parallelism(facts: Facts, within: float) -> Iterator[Advice]:
    lag = facts.lag
    members = (lag.members or 0) - facts.idle_members
    reading = [each.rate_out for each in lag.partitions if each.records and each.rate_out]
    if not reading or members < 1:
        return
    available = sum(facts.partitions.values())
    each_reads, arriving = sum(reading) / members, lag.rate_in or 0.0
    catching_up = lag.records / within
    needed = math.ceil((arriving + catching_up) / each_reads)
    arithmetic = (
        f"{'1 member reads' if members == 1 else f'{members} members read'} {each_reads:,.0f} records/s each; {arriving:,.0f} arrive, and {lag.records:,} unread within "
        f"{show_seconds(within)} are {catching_up:,.0f} more: {needed} members. "
    )
    if facts.idle_members:
        arithmetic += f"{facts.idle_members} more have no partition. "
    if members < min(needed, available):
        more = min(needed, available) - members - facts.idle_members
        yield Advice(
            "more-members",
            f"Start {more} more members, {min(needed, available)} in all.",
            f"{arithmetic}{available} partitions allow up to {available}.",
            f"start {more} more of your consumers with group.id={lag.group_id}",
        )
    if needed > available:
        one = max(facts.partitions, key=lambda name: _unread(lag, name))
        count = math.ceil(facts.partitions[one] * needed / available)
        yield Advice(
            "more-partitions",
            f"Give {one} {count} partitions: each is read by one member at most.",
            f"{arithmetic}{available} partitions allow {available}. Keys move to other partitions, so order within a key is lost at "
            "that moment; what is unread stays where it is.",
            f"headrace topics alter {one} --partitions {count}",
        )


def _batches(facts: Facts) -> Iterator[Advice]:
    for place, found in facts.samples.items():
        small = found.batches and found.size / found.batches < _SMALL_BATCH
        if found.batches >= _ENOUGH_BATCHES and small and found.records_per_batch < _FEW_RECORDS:
            yield Advice(
                "larger-batches",
                f"Have producers of {place.topic} send larger batches: brokers and consumers pay for each batch.",
                f"{found.batches:,} unread batches of {place} hold {found.records_per_batch:.1f} records and "
                f"{found.size / found.batches:,.0f} B on average.",
                "in producers: linger.ms=20, batch.size=131072, compression.type=lz4; in consumers: fetch.min.bytes=65536, "
                "max.poll.records=2000",
            )
            return


def _divert(facts: Facts, within: float) -> Advice:
    lag = facts.lag
    left = lag.seconds_to_catch_up
    return Advice(
        "divert",
        "Serve new records at once and let the backlog drain beside them, if what is new matters more.",
        f"at this pace the group {'never catches up' if left is None else f'catches up in {show_seconds(left)}'}, and was to do so within "
        f"{show_seconds(within)}; a new record waits behind {lag.records:,} others.",
        f"headrace backlog divert {lag.group_id} --topic {_topic(facts)}",
    )


def _topic(facts: Facts) -> str:
    """The one that most of the unread records are in."""
    names = {each.partition.topic for each in facts.lag.partitions}
    return max(sorted(names), key=lambda name: _unread(facts.lag, name), default="")


def _unread(lag: GroupLag, topic: str) -> int:
    return sum(each.records for each in lag.partitions if each.partition.topic == topic)


def _next_offset(facts: Facts, each: PartitionLag) -> int:
    """The next record to read: what is committed may have been deleted."""
    return each.end - each.records


def _shown(key: bytes | None) -> str:
    return "without a key" if key is None else f"key {_text(key)}"


def _text(key: bytes) -> str:
    shown = key[:60].decode("utf-8", "backslashreplace")
    return f"{shown}…" if len(key) > 60 else shown

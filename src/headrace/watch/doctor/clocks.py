"""Clocks: this machine's beside the brokers', and the brokers' beside each other.

No request of Kafka's protocol asks for the time. But brokers stamp records themselves in __consumer_offsets, __transaction_state and
topics with message.timestamp.type=LogAppendTime. The newest of them says how late it is at least on the leader's clock; one that was
written between two looks of ours says it exactly. `probe` has one written on each broker, as the offset of a group of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headrace.client.administration import group_offsets, groups, offsets
from headrace.client.administration.names import Partition
from headrace.link.cluster import GROUP
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, error, listed, note, warning
from headrace.watch.doctor.scene import Scene
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest

_OFFSETS = "__consumer_offsets"
_STAMPED = frozenset({_OFFSETS, "__transaction_state"})
_MOST = 200
"""Partitions to look at, the first of each leader before the second."""
_PROBES = "headrace-doctor-clock-"
_NAMES = 20
"""Names to try for each broker: enough that it coordinates one of them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one stamp says about a broker's clock, minus ours, in seconds."""

    at_least: float
    at_most: float | None
    """None for a record that was there before: its broker's clock may have gone on since."""


def _clocks(scene: Scene) -> Iterator[Finding]:
    readings = read_clocks(scene)
    yield from judge(readings, scene.bounds.skew)
    unknown = [broker for broker in scene.live if broker not in readings or readings[broker].at_most is None]
    if unknown and not scene.may_probe:
        yield note(
            f"Whether the clock of {_of(unknown)} is slow is not known: nothing was written there during the look that a broker stamps.",
            "Ask again with --probe, which commits an offset on each broker and deletes it again.",
            unknown,
        )


def judge(readings: Mapping[int, Reading], tolerated: float) -> Iterator[Finding]:
    for broker, reading in sorted(readings.items()):
        if reading.at_least > tolerated:
            yield _skewed(broker, reading.at_least, "ahead of")
        elif reading.at_most is not None and reading.at_most < -tolerated:
            yield _skewed(broker, -reading.at_most, "behind")
    for first, a in sorted(readings.items()):
        for second, b in sorted(readings.items()):
            if b.at_most is not None and a.at_least - b.at_most > tolerated:
                yield error(
                    f"The clock of broker {first} is {a.at_least - b.at_most:.0f} s or more ahead of broker {second}'s: retention, "
                    "LogAppendTime and transaction timeouts change when leaders move.",
                    "Synchronise both with NTP (chronyc tracking, timedatectl).",
                    [first, second],
                )


def _skewed(broker: int, seconds: float, how: str) -> Finding:
    return warning(
        f"The clock of broker {broker} is {seconds:.0f} s or more {how} this machine's: lag in seconds, retention and timestamps are "
        "off by as much.",
        "Synchronise both with NTP (chronyc tracking, timedatectl).",
        [broker],
    )


def read_clocks(scene: Scene) -> dict[int, Reading]:
    """By broker; those that lead nothing stamped are left out."""
    leaders = _stamped_partitions(scene)
    before = offsets.list_offsets(scene.session, list(leaders), offsets.LATEST)[0]
    asked = time.time()
    if scene.may_probe:
        _probe(scene, leaders)
    else:
        time.sleep(min(1.0, scene.watching.window / 10))
    stamps = offsets.newest(scene.session, list(leaders))
    now = time.time()
    found: dict[int, Reading] = {}
    for partition, (offset, stamp) in stamps.items():
        is_new = partition in before and offset >= before[partition]
        reading = Reading(stamp - now, stamp - asked if is_new else None)
        broker = leaders[partition]
        found[broker] = _both(found[broker], reading) if broker in found else reading
    return found


def _both(one: Reading, other: Reading) -> Reading:
    limits = [each.at_most for each in (one, other) if each.at_most is not None]
    return Reading(max(one.at_least, other.at_least), min(limits, default=None))


def _stamped_partitions(scene: Scene) -> dict[Partition, int]:
    """Those whose records are stamped by their leader, and the leader."""
    stamped = {
        topic
        for topic, settings in scene.topic_settings.items()
        if topic in _STAMPED or settings.get("message.timestamp.type") == "LogAppendTime"
    }
    by_leader: dict[int, list[Partition]] = {}
    for each in scene.partitions:
        if each.topic in stamped and each.leader in scene.live:
            by_leader.setdefault(each.leader, []).append(each.key)
    share = max(1, _MOST // max(1, len(by_leader)))
    most = len(scene.partitions) if scene.may_probe else share
    return {each: leader for leader, led in by_leader.items() for each in led[:most]}


def _probe(scene: Scene, leaders: Mapping[Partition, int]) -> None:
    """Have an offset committed, and so stamped, on each broker; then delete it. Any partition will do to commit for."""
    coordinators = {broker for (topic, _), broker in leaders.items() if topic == _OFFSETS}
    target = next((each.key for each in scene.partitions if each.leader in scene.live), None)
    if not coordinators or target is None:
        return
    names = [f"{_PROBES}{number}" for number in range(_NAMES * len(coordinators))]
    reply = scene.session.call(FindCoordinatorRequest(names[0], GROUP, names))
    for group in {each.node_id: each.key for each in reply.coordinators if not each.error_code}.values():
        try:
            group_offsets.commit(scene.session, group, {target: 0})
        finally:
            groups.delete(scene.session, group)


def _of(brokers: Iterable[int]) -> str:
    named = list(brokers)
    return f"broker {named[0]}" if len(named) == 1 else f"brokers {listed(named)}"


CLOCKS = Check(
    "clock-skew",
    Severity.ERROR,
    "brokers' clocks beside this machine's and each other's, by records that brokers stamp themselves",
    Needs.CLUSTER,
    _clocks,
)

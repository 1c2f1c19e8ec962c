"""Disks: how full they are, when they will be full, and whether brokers share the load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.client.administration.names import Partition
from headrace.client.durations import show_seconds
from headrace.client.sizes import show_bytes
from headrace.watch.doctor.findings import (
    Check,
    Finding,
    Needs,
    Severity,
    error,
    note,
    warning,
)
from headrace.watch.doctor.scene import Scene

_MAKE_ROOM = "Lower retention.ms or retention.bytes of the largest topics, or give the broker more disk"


def _space(scene: Scene) -> Iterator[Finding]:
    unknown = []
    for broker, directories in sorted(scene.log_dirs.items()):
        for each in directories:
            place = f"{each.path} of broker {broker}"
            if each.error is not None:
                yield error(
                    f"Directory {place} is offline: its disk failed.",
                    "Repair or replace the disk and restart the broker; 'headrace cluster health' lists the partitions concerned.",
                    [place],
                )
            elif not each.total_bytes or each.usable_bytes is None:
                unknown.append(broker)
            else:
                yield from _free(scene, place, each.usable_bytes, each.total_bytes)
    if unknown:
        yield note(
            f"Brokers {', '.join(map(str, sorted(set(unknown))))} do not report how full their disks are (Kafka 3.3 and newer do).",
            "Look with 'df' on their machines.",
            unknown,
        )


def _free(scene: Scene, place: str, usable: int, total: int) -> Iterator[Finding]:
    share, bounds = usable / total, scene.bounds
    if share >= bounds.disk_free_warning:
        return
    say = error if share < bounds.disk_free_error else warning
    yield say(
        f"The disk under {place} has {show_bytes(usable)} of {show_bytes(total)} left ({100 * share:.0f} %); a broker takes a "
        "directory offline when its disk is full.",
        f"{_MAKE_ROOM}; 'headrace topics describe' shows sizes.",
        [place],
    )


@dataclass(frozen=True, slots=True)
class Stream:
    """What arrives in one replica."""

    bytes_per_second: float
    keeps_seconds: float | None
    """How long retention keeps it; None for ever."""
    keeps_bytes: float | None = None

    @property
    def limit(self) -> float | None:
        """Seconds for which this stream adds to the disk; then as much is deleted as arrives."""
        by_size = None if self.keeps_bytes is None else self.keeps_bytes / self.bytes_per_second
        known = [each for each in (self.keeps_seconds, by_size) if each is not None]
        return min(known, default=None)


def seconds_until_full(usable: float, streams: Iterable[Stream]) -> float | None:
    """When what arrives from now on fills the disk, if it goes on like this; None when retention deletes it in time.

    What is there already only gets less, so it is left out: the disk may last longer, never shorter.
    """
    growing = [each for each in streams if each.bytes_per_second > 0]
    limits = sorted({each.limit for each in growing if each.limit is not None})
    past = 0.0
    for until in [*limits, None]:
        rate = sum(each.bytes_per_second for each in growing if each.limit is None or each.limit > past)
        if rate <= 0:
            return None
        if until is None or rate * (until - past) >= usable:
            return past + usable / rate
        usable -= rate * (until - past)
        past = until
    return None


def _forecast(scene: Scene) -> Iterator[Finding]:
    growth = scene.watching.growth()
    streams: dict[tuple[int, str], dict[Partition, Stream]] = {}
    for (broker, path, topic, partition), size in growth.grown.items():
        keeps = scene.topic_settings.get(topic, {})
        by_age, by_size = int(keeps.get("retention.ms", -1)), int(keeps.get("retention.bytes", -1))
        if "delete" not in keeps.get("cleanup.policy", "delete"):
            continue  # compaction keeps one record of each key, however many arrive
        streams.setdefault((broker, path), {})[topic, partition] = Stream(
            size / growth.seconds,
            by_age / 1000 if by_age >= 0 else None,
            float(by_size) if by_size >= 0 else None,
        )
    for broker, directories in sorted(scene.log_dirs.items()):
        for each in directories:
            arriving = streams.get((broker, each.path), {})
            if each.usable_bytes is None or not arriving:
                continue
            left = seconds_until_full(each.usable_bytes, arriving.values())
            if left is None or left >= scene.bounds.disk_full_warning:
                continue
            say = error if left < scene.bounds.disk_full_error else warning
            most = max(arriving, key=lambda key: arriving[key].bytes_per_second)
            rate = sum(stream.bytes_per_second for stream in arriving.values())
            yield say(
                f"The disk under {each.path} of broker {broker} is full in {show_seconds(left)} if {show_bytes(rate)}/s go on "
                f"arriving, most of it in {most[0]}-{most[1]}: retention deletes nothing before.",
                f"{_MAKE_ROOM}: 'headrace configs alter topic {most[0]} --set retention.ms=…'.",
                [f"{each.path} of broker {broker}"],
            )


def _balance(scene: Scene) -> Iterator[Finding]:
    held = {
        broker: sum(replica.size for each in directories for replica in each.replicas)
        for broker, directories in scene.log_dirs.items()
    }
    if len(held) < 2:
        return
    most, least = max(held, key=lambda each: held[each]), min(held, key=lambda each: held[each])
    fair = sum(held.values()) / len(held)
    if held[most] > scene.bounds.uneven * fair and held[most] - held[least] > scene.bounds.uneven_bytes:
        largest = _largest_topic(scene, most)
        yield warning(
            f"Broker {most} holds {show_bytes(held[most])}, broker {least} only {show_bytes(held[least])}; the largest topic on "
            f"broker {most} is {largest}.",
            f"Move replicas: 'headrace reassign plan {largest}' makes a plan.",
            [most, least],
        )


def _largest_topic(scene: Scene, broker: int) -> str:
    sizes: Counter[str] = Counter()
    for each in scene.log_dirs[broker]:
        for replica in each.replicas:
            sizes[replica.topic] += replica.size
    return max(sizes, key=lambda topic: sizes[topic])


SPACE = Check(
    "disk-space",
    Severity.ERROR,
    "free space of the disks under each broker's directories",
    Needs.CLUSTER,
    _space,
)
FORECAST = Check(
    "disk-forecast",
    Severity.ERROR,
    "when each disk is full, by what arrives during the look and what retention deletes",
    Needs.CLUSTER,
    _forecast,
    watches=True,
)
BALANCE = Check(
    "disk-balance",
    Severity.WARNING,
    "whether brokers hold about as many bytes as each other",
    Needs.CLUSTER,
    _balance,
)

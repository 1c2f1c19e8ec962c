"""Whether topics survive the loss of a broker: replication factors and min.insync.replicas."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.watch.doctor.findings import (
    Check,
    Finding,
    Needs,
    Severity,
    counted,
    error,
    listed,
    note,
    warning,
)
from headrace.watch.doctor.scene import Scene


def _factors(scene: Scene) -> dict[str, tuple[int, int]]:
    """The replication factor of each topic, and min.insync.replicas."""
    found: dict[str, tuple[int, int]] = {}
    for each in scene.partitions:
        smallest, _ = found.get(each.topic, (len(each.replicas), 0))
        found[each.topic] = min(smallest, len(each.replicas)), each.min_isr
    return found


def _single(scene: Scene) -> Iterator[Finding]:
    if len(scene.description.brokers) < 2:
        return
    alone = [topic for topic, (factor, _) in sorted(_factors(scene).items()) if factor == 1]
    if alone:
        yield warning(
            f"{counted(len(alone), 'topic')} of one replica in a cluster of {len(scene.description.brokers)} brokers: {listed(alone)} "
            "cannot be used while that broker is down, and lost with its disk.",
            f"'headrace reassign plan {alone[0]} --replication-factor {min(3, len(scene.description.brokers))}' makes a plan for more "
            "replicas.",
            alone,
        )


def _minimum(scene: Scene) -> Iterator[Finding]:
    factors = _factors(scene)
    impossible = [topic for topic, (factor, minimum) in sorted(factors.items()) if minimum > factor]
    brittle = [topic for topic, (factor, minimum) in sorted(factors.items()) if minimum == factor > 1]
    weak = [
        topic
        for topic, (factor, minimum) in sorted(factors.items())
        if minimum == 1 and factor >= 3 and not topic.startswith("__")
    ]
    if impossible:
        first = impossible[0]
        yield error(
            f"min.insync.replicas is larger than the replication factor of {listed(impossible)}: every write with acks=all is refused.",
            f"'headrace configs alter topic {first} --set min.insync.replicas={max(1, factors[first][0] - 1)}', or 'headrace reassign "
            f"plan {first} --replication-factor {factors[first][1] + 1}'.",
            impossible,
        )
    if brittle:
        first = brittle[0]
        yield warning(
            f"min.insync.replicas equals the replication factor of {listed(brittle)}: one broker that is down, or restarts, stops writes "
            "with acks=all.",
            f"'headrace configs alter topic {first} --set min.insync.replicas={factors[first][0] - 1}'.",
            brittle,
        )
    if weak:
        yield note(
            f"min.insync.replicas is 1 for {listed(weak)}, with three replicas or more: a write with acks=all may be acknowledged by one "
            "broker alone, and lost with it.",
            f"'headrace configs alter topic {weak[0]} --set min.insync.replicas=2'; for all topics set it on the brokers.",
            weak,
        )


SINGLE = Check(
    "single-replica",
    Severity.WARNING,
    "topics of one replica in a cluster of several brokers",
    Needs.CLUSTER,
    _single,
)
MINIMUM = Check(
    "min-insync-replicas",
    Severity.ERROR,
    "min.insync.replicas beside the replication factor of each topic",
    Needs.CLUSTER,
    _minimum,
)

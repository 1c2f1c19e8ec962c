"""Partitions as a command line names them: `orders` is all of a topic, `orders:0,3` are two of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.cli.failure import Failure, Misuse

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster


def resolve(cluster: Cluster, names: Sequence[str]) -> list[tuple[str, int]]:
    """Raises Failure for a topic or partition that is not there."""
    from headrace.client.administration import topics

    asked = [(name, *name.partition(":")) for name in names]
    described = cluster.call(topics.describe, list(dict.fromkeys(topic for _, topic, _, _ in asked)))
    there = {topic.name: [p.id for p in topic.partitions] for topic in described}
    chosen: list[tuple[str, int]] = []
    for name, topic, colon, numbers in asked:
        if not colon:
            chosen += [(topic, number) for number in there[topic]]
            continue
        for number in numbers.split(","):
            if not number.isdigit():
                raise Misuse(
                    f"Invalid partition '{number}' specified in topic arg '{name}'; write TOPIC or TOPIC:0,1."
                )
            if int(number) not in there[topic]:
                raise Failure(f"Topic '{topic}' has no partition {number}; it has 0 to {there[topic][-1]}.")
            chosen.append((topic, int(number)))
    return list(dict.fromkeys(chosen))

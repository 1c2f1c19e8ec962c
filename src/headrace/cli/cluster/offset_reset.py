"""A reset of a group's offsets as a command line asks for it: from options or a file to a plan, and the plan carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.cluster import partition_names
from headrace.cli.failure import Failure
from headrace.cli.parsing import offsets_file
from headrace.client.administration import reset
from headrace.client.administration.reset import Plan, Target

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster


@dataclass(frozen=True, slots=True)
class Reset:
    to: Target | Path
    """A place, or a file of offsets."""
    partitions: Sequence[str] = ()
    """As `topic` or `topic:0,1`; none with a file, or when every partition with a committed offset is meant."""


def plan(cluster: Cluster, group: str, wanted: Reset, warn: Callable[[str], None]) -> Plan:
    """The new offsets of a group; empty when nothing is to be reset."""
    if isinstance(wanted.to, Path):
        read = offsets_file.read(wanted.to, [group]).get(group, {})
        return cluster.call(reset.within_range, read, warn)
    if wanted.partitions:
        partitions = partition_names.resolve(cluster, wanted.partitions)
    else:
        partitions = sorted(cluster.call(reset.committed, group))
    return cluster.call(reset.plan, group, partitions, wanted.to, warn)


def carry_out(cluster: Cluster, group: str, plan: Plan) -> None:
    for (topic, partition), refused in cluster.call(reset.carry_out, group, plan).items():
        raise Failure(f"The offset of {topic}-{partition} was not set: {refused}")

"""The assignors of the consumer protocol: pure functions from subscriptions to partitions per member."""

from __future__ import annotations

from headrace.server.groups.assignors.range import assign_range
from headrace.server.groups.assignors.spec import Assignor
from headrace.server.groups.assignors.uniform import assign_uniform

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}

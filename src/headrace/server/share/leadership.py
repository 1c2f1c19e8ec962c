"""Follows the leaders of `__share_group_state`: the share coordinator of a broker begins when it first leads one of the partitions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from headrace.server.coordinator.leader_log import LeaderLog
from headrace.server.replica.partition import Partition

if TYPE_CHECKING:
    from headrace.server.share.coordinator.coordinator import ShareCoordinator


class StateLeadership:
    def __init__(self, coordinator: Callable[[], ShareCoordinator], disk: Executor) -> None:
        self._coordinator = coordinator
        self._disk = disk

    def elected(self, partition: Partition) -> None:
        log = LeaderLog(partition, self._disk)
        self._coordinator().lead(partition.index, log, partition.delete_records)

    def resigned(self, partition: Partition) -> None:
        self._coordinator().resign(partition.index)

"""Quotas that change while the broker runs: those of the metadata's newest image are in force."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import MetadataImage, QuotaEntity
from headrace.server.cluster.node import ClusterNode
from headrace.server.quotas.addresses import AddressLimits, AddressRates
from headrace.server.quotas.client_quotas import ClientQuotas

log = logging.getLogger(__name__)

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


def follow_quotas(
    cluster: ClusterNode, clients: ClientQuotas, addresses: AddressRates, threads: Executor
) -> None:
    """Apply the cluster's quotas now and whenever they change. Host names are looked up by a thread."""

    def apply(quotas: Quotas) -> None:
        clients.apply(quotas)
        made = asyncio.get_running_loop().run_in_executor(threads, AddressLimits.read, quotas)
        made.add_done_callback(lambda done: limit(quotas, done))

    def limit(quotas: Quotas, made: asyncio.Future[AddressLimits]) -> None:
        if made.cancelled() or quotas is not cluster.image.quotas:
            return
        error = made.exception()
        if error is None:
            addresses.limits = made.result()
        else:
            log.error("The connection quotas stay as they were: %s", error)

    def changed(old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        if new.quotas is not old.quotas:
            apply(new.quotas)

    if cluster.image.quotas:
        apply(cluster.image.quotas)
    cluster.subscribe(changed)

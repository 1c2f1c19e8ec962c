"""Copies a cluster's metadata from one store to another, so that a cluster can move to ZooKeeper, or back, with its data.

The brokers must be stopped. The head of the change sequence is written last, so an interrupted copy is not taken for a cluster
and can simply be repeated.
"""

from __future__ import annotations

from headrace.server.cluster.sequence import HEAD, prepare_paths, read_head
from headrace.server.cluster.store import Create, SetData, Store, StoreError

BROKERS = "/brokers/ids"
ROOTS = ("/controller_epoch", "/metadata")


async def copy_facts(source: Store, target: Store) -> int:
    """Copy everything but ephemeral nodes; returns the number of the last change."""
    if await source.get(HEAD) is None:
        raise StoreError("There is no cluster to copy: no broker has ever started with that store.")
    alive = await source.children(BROKERS)
    if alive:
        raise StoreError(f"Broker {alive[0]} is running; stop every broker before its cluster is copied.")
    if (await target.get(HEAD)) is not None and (await read_head(target)).offset >= 0:
        raise StoreError("The target already holds a cluster; choose an empty one (another chroot).")
    await prepare_paths(target)
    for root in ROOTS:
        await _copy(source, target, root)
    head = await source.get(HEAD)
    assert head is not None
    await target.commit([SetData(HEAD, head[0])])
    return (await read_head(target)).offset


async def _copy(source: Store, target: Store, path: str) -> None:
    found = await source.get(path)
    if found is None or path == HEAD:
        return
    there = await target.get(path)
    await target.commit([SetData(path, found[0]) if there is not None else Create(path, found[0])])
    for name in await source.children(path):
        await _copy(source, target, f"{path}/{name}")

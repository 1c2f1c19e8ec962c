"""Electing the controller: a session holds /controller, and /controller_epoch counts the controllers so far."""

from __future__ import annotations

import contextlib
import json

from headrace.server.cluster.sequence import CONTROLLER_EPOCH
from headrace.server.cluster.store import ConflictError, Create, Delete, SetData, Store, StoreError, Watch

CONTROLLER = "/controller"


async def elect(store: Store, broker_id: int, watch: Watch) -> int | None:
    """Try to become the controller.

    Returns the new epoch, which is the version of /controller_epoch, or None while another broker is the controller. `watch` is
    called when /controller changes.
    """
    while True:
        holder = await store.get(CONTROLLER, watch)
        known = await store.get(CONTROLLER_EPOCH)
        if known is None:
            raise StoreError(f"The store has no {CONTROLLER_EPOCH}; it was not set up for Headrace.")
        if holder is not None:
            epoch = int(json.loads(holder[0])["epoch"])
            # This session may have won without knowing: the store can go away before it confirms the transaction.
            mine = holder[1].owner == store.session_id and known[1].version == epoch
            return epoch if mine else None
        epoch = known[1].version + 1
        claim = json.dumps({"version": 1, "brokerid": broker_id, "epoch": epoch}).encode()
        try:
            await store.commit(
                [
                    Create(CONTROLLER, claim, ephemeral=True),
                    SetData(CONTROLLER_EPOCH, str(epoch).encode(), known[1].version),
                ]
            )
        except ConflictError:
            continue
        return epoch


async def resign(store: Store) -> None:
    """Let another broker be elected, after this session's controller has stepped down."""
    found = await store.get(CONTROLLER)
    if found is not None and found[1].owner == store.session_id:
        with contextlib.suppress(ConflictError):
            await store.commit([Delete(CONTROLLER, found[1].version)])

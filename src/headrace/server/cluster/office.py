"""The controller's office: /controller, which a broker's session holds, and /controller_epoch, which counts the holders."""

from __future__ import annotations

import contextlib
import json

from headrace.server.cluster.sequence import CONTROLLER_EPOCH
from headrace.server.cluster.store import ConflictError, Create, Delete, SetData, Store, StoreError, Watch

CONTROLLER = "/controller"


async def elect(store: Store, broker_id: int, watch: Watch) -> int | None:
    """Try to become the controller.

    The new epoch, which is the version of /controller_epoch, when it worked; None when another broker holds the office, and then
    `watch` is told when that ends.
    """
    while True:
        holder = await store.get(CONTROLLER, watch)
        known = await store.get(CONTROLLER_EPOCH)
        if known is None:
            raise StoreError(f"The store has no {CONTROLLER_EPOCH}; it was not set up for Headrace.")
        if holder is not None:
            epoch = int(json.loads(holder[0])["epoch"])
            # This session can hold the office without knowing: when it won, the store went away before it said so.
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


async def give_up(store: Store) -> None:
    """A controller that failed must not keep others from the office."""
    found = await store.get(CONTROLLER)
    if found is not None and found[1].owner == store.session_id:
        with contextlib.suppress(ConflictError):
            await store.commit([Delete(CONTROLLER, found[1].version)])

"""Which brokers are alive: reads their registrations from the store and brings the image in line with them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from headrace.server.cluster import brokers
from headrace.server.cluster.changes import Change
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.registration import BROKER_IDS, Registration
from headrace.server.cluster.store import Store, Watch

log = logging.getLogger(__name__)

Registered = Mapping[int, tuple[int, Registration]]
"""The live brokers: id to (epoch, registration)."""


async def read_registrations(store: Store, watch: Watch) -> Registered:
    """`watch` is called when any of them changes."""
    registered: dict[int, tuple[int, Registration]] = {}
    for name in await store.children(BROKER_IDS, watch):
        found = await store.get(f"{BROKER_IDS}/{name}", watch)
        if found is None:
            continue
        data, stat = found
        try:
            registered[int(name)] = (stat.created, Registration.decode(int(name), data))
        except (ValueError, KeyError, TypeError) as error:
            log.warning("%s/%s was not created by a Headrace broker (%r)", BROKER_IDS, name, error)
    return registered


def reconcile(image: MetadataImage, registered: Registered, unclean: brokers.Unclean) -> list[Change]:
    """The changes that make the image agree with the registrations: brokers that died come first, then those that registered."""
    changes: list[Change] = []

    def note(made: list[Change]) -> None:
        nonlocal image
        changes.extend(made)
        image = apply_changes(image, image.offset, made)

    note(brokers.fence(image, _gone(image, registered), unclean))
    note(brokers.register(image, _arrivals(image, registered), unclean))
    for broker_id, (_, registration) in registered.items():
        if registration.stopping and not image.brokers[broker_id].in_controlled_shutdown:
            outcome = brokers.begin_shutdown(image, broker_id, unclean)
            log.info("broker %d is stopping; %d partition(s) have no other leader", broker_id, outcome.result)
            note(outcome.changes)
    return changes


def _gone(image: MetadataImage, registered: Registered) -> list[int]:
    """Brokers that died. One that is already back counts too: it led nothing between its two registrations."""
    gone = []
    for broker_id, broker in image.brokers.items():
        epoch = registered[broker_id][0] if broker_id in registered else None
        if broker.fenced or epoch == broker.epoch:
            continue
        log.info("broker %d is gone", broker_id)
        if epoch is None or len(image.brokers) > 1:  # The only broker of a cluster continues to lead.
            gone.append(broker_id)
    return gone


def _arrivals(image: MetadataImage, registered: Registered) -> list[brokers.Arrival]:
    """Brokers that registered since `image`."""
    arrivals = []
    for broker_id, (epoch, registration) in registered.items():
        known = image.brokers.get(broker_id)
        if known is None or known.fenced or known.epoch != epoch:
            log.info("broker %d registered, epoch %d", broker_id, epoch)
            # Data from before the last known registration is an old copy, restored in place of lost data.
            old_copy = known is not None and 0 <= registration.previous_epoch < known.epoch
            arrivals.append(
                brokers.Arrival(
                    registration.broker(epoch),
                    registration.kept_its_data and not old_copy,
                    registration.stopped_cleanly,
                )
            )
    return arrivals

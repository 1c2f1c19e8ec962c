"""What follows when a broker comes, goes, or says it is about to go.

Pure functions from an image to the changes that answer the event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.cluster.changes import BrokerChanged, BrokerUnregistered, Change
from headrace.cluster.elections import Election, next_state
from headrace.cluster.image import NO_LEADER, Broker, MetadataImage
from headrace.cluster.outcome import Outcome, PartitionEdits
from headrace.wire.errors import ErrorCode, KafkaError

Unclean = Callable[[str], bool]
"""Whether a topic allows unclean election."""


def register(
    image: MetadataImage, broker: Broker, unclean: Unclean, kept_its_data: bool, stopped_cleanly: bool
) -> list[Change]:
    """A broker registered: it is alive from here on, and partitions without a leader may find one in it.

    A broker that `kept_its_data` not (an empty disk, a machine that crashed) leaves every ISR that has another member before
    it could be elected. One that did not stop cleanly leads on only under a new epoch.
    """
    edits = PartitionEdits()
    acceptable = (_active(image) | {broker.id}).__contains__
    for topic, index, partition in image.partitions_of(broker.id):
        isr = partition.isr
        if not kept_its_data and broker.id in isr:
            isr = tuple(member for member in isr if member != broker.id)
        led = partition.leader == broker.id
        if not led and partition.leader != NO_LEADER and isr == partition.isr:
            continue
        # Alone and stopped cleanly, it is where it was; otherwise someone may hold what it no longer has.
        new_epoch = led and (len(partition.replicas) > 1 or not (stopped_cleanly and kept_its_data))
        state = next_state(
            partition,
            acceptable,
            election=Election.UNCLEAN if unclean(topic.name) else Election.ONLINE,
            isr=isr,
            new_epoch=new_epoch,
        )
        edits.put(topic, index, state)
    return [BrokerChanged(replace(broker, fenced=False, in_controlled_shutdown=False)), *edits.changes()]


def fence(image: MetadataImage, broker_id: int, unclean: Unclean) -> list[Change]:
    """A broker is gone: others lead what it led, and it is out of every ISR that has another member."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return []
    changes: list[Change] = [BrokerChanged(replace(broker, fenced=True, in_controlled_shutdown=False))]
    return changes + _without(image, broker_id, unclean).changes()


def begin_shutdown(image: MetadataImage, broker_id: int, unclean: Unclean) -> Outcome[int]:
    """A broker is about to stop: its leaders move while it still serves. The result is how many it still leads."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        raise _not_registered(broker_id)
    edits = PartitionEdits()
    remaining = 0
    acceptable = (_active(image) - {broker_id}).__contains__
    for topic, index, partition in image.partitions_of(broker_id):
        others = tuple(member for member in partition.isr if member != broker_id)
        if not any(map(acceptable, others)):
            # Nobody can take over. It leads until it is gone, rather than leaving clients without a leader now.
            remaining += partition.leader == broker_id
            continue
        election = Election.UNCLEAN if unclean(topic.name) else Election.ONLINE
        edits.put(topic, index, next_state(partition, acceptable, election=election, isr=others))
    changes: list[Change] = []
    if not broker.in_controlled_shutdown:
        changes.append(BrokerChanged(replace(broker, in_controlled_shutdown=True)))
    return Outcome(remaining, changes + edits.changes())


def unregister(image: MetadataImage, broker_id: int, unclean: Unclean) -> list[Change]:
    """Forget a broker for good."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise _not_registered(broker_id)
    return [*_without(image, broker_id, unclean).changes(), BrokerUnregistered(broker_id)]


def _without(image: MetadataImage, broker_id: int, unclean: Unclean) -> PartitionEdits:
    edits = PartitionEdits()
    acceptable = (_active(image) - {broker_id}).__contains__
    for topic, index, partition in image.partitions_of(broker_id):
        if broker_id not in partition.isr and partition.leader != broker_id:
            continue
        others = tuple(member for member in partition.isr if member != broker_id)
        election = Election.UNCLEAN if unclean(topic.name) else Election.ONLINE
        edits.put(topic, index, next_state(partition, acceptable, election=election, isr=others))
    return edits


def _active(image: MetadataImage) -> set[int]:
    return {broker.id for broker in image.brokers.values() if broker.active}


def _not_registered(broker_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
    )

"""What follows when a broker comes, goes, or says it is about to go.

Pure functions from an image to the changes that answer the event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, replace

from headrace.server.cluster.changes import BrokerChanged, BrokerUnregistered, Change
from headrace.server.cluster.elections import Election, next_state
from headrace.server.cluster.image import NO_LEADER, Broker, MetadataImage, Partition
from headrace.server.cluster.outcome import Outcome, PartitionEdits
from headrace.wire.errors import ErrorCode, KafkaError

Unclean = Callable[[str], bool]
"""Whether a topic allows unclean election."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A broker that registered, and what it says of its data."""

    broker: Broker
    kept_its_data: bool = True
    """False with an empty disk, an older copy of it, or after a crash of the machine: it may lack what it confirmed."""
    stopped_cleanly: bool = True


def register(image: MetadataImage, came: Sequence[Arrival], unclean: Unclean) -> list[Change]:
    """Brokers registered: they are alive from here on, and partitions without a leader may find one in them.

    One that has not kept its data leaves every ISR that has another member before it could be elected. One that did not stop
    cleanly leads on only under a new epoch.
    """
    changes: list[Change] = [
        BrokerChanged(replace(each.broker, fenced=False, in_controlled_shutdown=False)) for each in came
    ]
    ids = {each.broker.id for each in came}
    lost = {each.broker.id for each in came if not each.kept_its_data}
    unsure = lost | {each.broker.id for each in came if not each.stopped_cleanly}
    active = _active(image) | ids
    edits = PartitionEdits()
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if ids.isdisjoint(partition.replicas):
                continue
            led = partition.leader in ids
            isr = _trusted(partition, lost, active)
            if not led and partition.leader != NO_LEADER and isr == partition.isr:
                continue
            # Alone and stopped cleanly, it is where it was; otherwise someone may hold what it no longer has.
            new_epoch = led and (len(partition.replicas) > 1 or partition.leader in unsure)
            state = next_state(
                partition,
                active.__contains__,
                election=Election.UNCLEAN if unclean(topic.name) else Election.ONLINE,
                isr=isr,
                new_epoch=new_epoch,
            )
            edits.put(topic, index, state)
    return changes + edits.changes()


def _trusted(partition: Partition, lost: Set[int], active: Set[int]) -> tuple[int, ...]:
    """The ISR without those who lost their data, and, where it has no leader but can, without those still away."""
    isr = tuple(member for member in partition.isr if member not in lost)
    if partition.leader == NO_LEADER:
        if isr:
            # Of members who went together the first to return lead; the others have to catch up with them.
            return tuple(member for member in isr if member in active) or isr
        # All that is left of the last members: the first of them leads, and the others follow what it has.
        return tuple(member for member in partition.replicas if member in partition.isr and member in active)[
            :1
        ]
    return isr


def fence(image: MetadataImage, gone: Collection[int], unclean: Unclean) -> list[Change]:
    """Brokers are gone: others lead what they led, and they are out of every ISR that has another member.

    Where all members went together all stay on record, since each has what is committed: the first of them to return with its
    data leads.
    """
    known = [image.brokers[broker_id] for broker_id in gone if image.alive(broker_id)]
    changes: list[Change] = [
        BrokerChanged(replace(broker, fenced=True, in_controlled_shutdown=False)) for broker in known
    ]
    return changes + _without(image, {broker.id for broker in known}, unclean).changes()


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


def relieve(image: MetadataImage, full: Set[int]) -> list[Change]:
    """Brokers whose disks are full: members of the ISR that have room lead instead, and acknowledge without them.

    Where no such member is alive nothing changes: all have what is committed, and one of them has to lead.
    """
    edits = PartitionEdits()
    with_room = (_active(image) - full).__contains__
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if partition.leader in full and any(map(with_room, partition.isr)):
                others = tuple(member for member in partition.isr if member not in full)
                edits.put(topic, index, next_state(partition, with_room, isr=others))
    return edits.changes()


def unregister(image: MetadataImage, broker_id: int, unclean: Unclean) -> list[Change]:
    """Forget a broker for good."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise _not_registered(broker_id)
    return [*_without(image, {broker_id}, unclean).changes(), BrokerUnregistered(broker_id)]


def _without(image: MetadataImage, gone: Set[int], unclean: Unclean) -> PartitionEdits:
    edits = PartitionEdits()
    if not gone:
        return edits
    acceptable = (_active(image) - gone).__contains__
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            others = tuple(member for member in partition.isr if member not in gone)
            if len(others) == len(partition.isr) and partition.leader not in gone:
                continue
            election = Election.UNCLEAN if unclean(topic.name) else Election.ONLINE
            edits.put(topic, index, next_state(partition, acceptable, election=election, isr=others))
    return edits


def _active(image: MetadataImage) -> set[int]:
    return {broker.id for broker in image.brokers.values() if broker.active}


def _not_registered(broker_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
    )

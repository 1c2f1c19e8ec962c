"""What changes when a broker registers, dies, is about to stop, runs out of disk space or is unregistered.

Pure functions from an image to changes.
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
    """A broker that registered, and the state of its data."""

    broker: Broker
    kept_its_data: bool = True
    """False with an empty disk, an old copy of the data, or after the machine crashed: records it acknowledged may be missing."""
    stopped_cleanly: bool = True


def register(image: MetadataImage, arrivals: Sequence[Arrival], unclean: Unclean) -> list[Change]:
    """Brokers registered: they are alive from now on and may lead partitions that have no leader.

    A broker that has not kept its data leaves every ISR that has another member before it can be elected. One that did not stop
    cleanly continues as leader only in a new epoch.
    """
    changes: list[Change] = [
        BrokerChanged(replace(each.broker, fenced=False, in_controlled_shutdown=False)) for each in arrivals
    ]
    ids = {each.broker.id for each in arrivals}
    lost = {each.broker.id for each in arrivals if not each.kept_its_data}
    unsure = lost | {each.broker.id for each in arrivals if not each.stopped_cleanly}
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
            # A sole replica that stopped cleanly has lost nothing; otherwise another replica may have records it lacks.
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
    """The ISR without brokers that lost their data and, for a partition without a leader, without those still away."""
    isr = tuple(member for member in partition.isr if member not in lost)
    if partition.leader == NO_LEADER:
        if isr:
            # When all members went together, the first to return lead, and the others catch up with them.
            return tuple(member for member in isr if member in active) or isr
        # All the last members lost data: the first of them leads with what it has, and the others follow.
        return tuple(member for member in partition.replicas if member in partition.isr and member in active)[
            :1
        ]
    return isr


def fence(image: MetadataImage, gone: Collection[int], unclean: Unclean) -> list[Change]:
    """Brokers died: other brokers take over their leadership, and they leave every ISR that has another member.

    An ISR whose members all died stays as it is, since each of them has what is committed: the first to return with its data
    leads.
    """
    known = [image.brokers[broker_id] for broker_id in gone if image.alive(broker_id)]
    changes: list[Change] = [
        BrokerChanged(replace(broker, fenced=True, in_controlled_shutdown=False)) for broker in known
    ]
    return changes + _without(image, {broker.id for broker in known}, unclean).changes()


def begin_shutdown(image: MetadataImage, broker_id: int, unclean: Unclean) -> Outcome[int]:
    """A broker is about to stop: leadership moves away while it still serves. The result is how many partitions it still leads."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        raise _not_registered(broker_id)
    edits = PartitionEdits()
    remaining = 0
    acceptable = (_active(image) - {broker_id}).__contains__
    for topic, index, partition in image.partitions_of(broker_id):
        others = tuple(member for member in partition.isr if member != broker_id)
        if not any(map(acceptable, others)):
            # No other broker can lead. It continues until it is gone, rather than leaving clients without a leader now.
            remaining += partition.leader == broker_id
            continue
        election = Election.UNCLEAN if unclean(topic.name) else Election.ONLINE
        edits.put(topic, index, next_state(partition, acceptable, election=election, isr=others))
    changes: list[Change] = []
    if not broker.in_controlled_shutdown:
        changes.append(BrokerChanged(replace(broker, in_controlled_shutdown=True)))
    return Outcome(remaining, changes + edits.changes())


def move_off_full_disks(image: MetadataImage, full: Set[int]) -> list[Change]:
    """Brokers have full disks: members of the ISR with room lead instead, and the full ones leave the ISR.

    Where no member with room is alive, nothing changes: all have what is committed, and one of them has to lead.
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
    """Remove a broker from the cluster for good."""
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

"""The controller as a pure state machine: whatever happens in whatever order, these rules hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.server.cluster import brokers
from headrace.server.cluster.change_codec import decode_changes, encode_changes
from headrace.server.cluster.changes import Change
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import NO_LEADER, Broker, MetadataImage, Partition
from headrace.server.cluster.leaders import PREFERRED, UNCLEAN, balance_leaders, elect_leaders
from headrace.server.cluster.partitions import alter_partition
from headrace.server.cluster.reassignments import alter_reassignments, list_reassignments
from headrace.server.cluster.topics import create_partitions, create_topics, delete_topics
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.create_partitions import CreatePartitionsTopic
from headrace.wire.messages.create_topics import CreatableTopic
from headrace.wire.messages.elect_leaders import ElectLeadersRequest
from headrace.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

IDS = st.integers(1, 5)
CONFIG = BrokerConfig.load({})


class ControllerRules(RuleBasedStateMachine):
    """Five brokers that come and go, topics that come and go and move, leaders that shrink and grow their ISR."""

    unclean = False

    def __init__(self) -> None:
        super().__init__()
        self.image = MetadataImage()
        self.epoch = 0
        self.topics_made = 0
        self.ever: dict[tuple[Any, int], Partition] = {}

    def apply(self, changes: list[Change]) -> None:
        self.image = apply_changes(self.image, self.image.offset + 1, decode_changes(encode_changes(changes)))

    def allowed(self, _: str) -> bool:
        return self.unclean

    def some_partition(self, data: st.DataObject) -> tuple[Any, int, Partition]:
        topic = data.draw(st.sampled_from(sorted(self.image.topics.values(), key=lambda topic: topic.name)))
        index = data.draw(st.integers(0, len(topic.partitions) - 1))
        return topic, index, topic.partitions[index]

    @initialize()
    def start(self) -> None:
        for broker_id in (1, 2, 3):
            self.register({broker_id: (True, True)})

    @rule(came=st.dictionaries(IDS, st.tuples(st.booleans(), st.booleans()), min_size=1))
    def register(self, came: dict[int, tuple[bool, bool]]) -> None:
        self.apply(brokers.fence(self.image, list(came), self.allowed))
        arrivals = []
        for broker_id, (kept, clean) in came.items():
            self.epoch += 1
            arrivals.append(brokers.Arrival(Broker(broker_id, self.epoch, ()), kept, clean))
        before = self.image
        self.apply(brokers.register(self.image, arrivals, self.allowed))
        assert all(self.image.brokers[broker_id].active for broker_id in came)
        lost = {broker_id for broker_id, (kept, _) in came.items() if not kept}
        if not self.unclean:
            self.check_arrivals(before, lost)

    def check_arrivals(self, before: MetadataImage, lost: set[int]) -> None:
        """No broker that lost data leads a partition that another member of the ISR may still have."""
        for topic in self.image.topics.values():
            for index, after in enumerate(topic.partitions):
                known = before.topics[topic.name].partitions[index]
                if known.leader == NO_LEADER and after.leader in lost:
                    assert set(known.isr) <= lost
                    assert after.isr == (after.leader,)

    @rule(gone=st.sets(IDS, min_size=1))
    def die(self, gone: set[int]) -> None:
        before = self.image
        gone = set(filter(self.image.alive, gone))
        self.apply(brokers.fence(self.image, gone, self.allowed))
        assert not any(map(self.image.alive, gone))
        for topic in self.image.topics.values():
            for index, partition in enumerate(topic.partitions):
                assert partition.leader not in gone
                if not self.unclean:
                    known = before.topics[topic.name].partitions[index].isr
                    assert set(partition.isr) == (set(known) - gone or set(known))

    @rule(broker_id=IDS)
    def begin_to_stop(self, broker_id: int) -> None:
        if self.image.alive(broker_id):
            outcome = brokers.begin_shutdown(self.image, broker_id, self.allowed)
            self.apply(outcome.changes)
            led = sum(
                partition.leader == broker_id for _, _, partition in self.image.partitions_of(broker_id)
            )
            assert led == outcome.result

    @rule(partitions=st.integers(1, 4), factor=st.integers(1, 3))
    def create(self, partitions: int, factor: int) -> None:
        self.topics_made += 1
        outcome = create_topics(
            self.image, CONFIG, [CreatableTopic(f"t{self.topics_made}", partitions, factor)]
        )
        self.apply(outcome.changes)

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        topic, _, _ = self.some_partition(data)
        self.apply(delete_topics(self.image, [topic.id]).changes)

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        topic, _, _ = self.some_partition(data)
        spec = CreatePartitionsTopic(topic.name, len(topic.partitions) + 1, None)
        self.apply(create_partitions(self.image, [spec]).changes)

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def change_isr(self, data: st.DataObject) -> None:
        topic, index, partition = self.some_partition(data)
        if partition.leader == NO_LEADER:
            return
        others = [replica for replica in partition.replicas if replica != partition.leader]
        resigns = data.draw(st.sampled_from([False, False, True]))
        alone = partition.isr == (partition.leader,)
        isr = [
            *([] if resigns else [partition.leader]),
            *data.draw(st.lists(st.sampled_from(others), unique=True) if others else st.just([])),
        ]
        stale = data.draw(st.sampled_from([0, 0, 0, 1]))
        leader = self.image.brokers[partition.leader]
        states = [
            BrokerState(each, self.image.brokers[each].epoch if each in self.image.brokers else 0)
            for each in isr
        ]
        asked = PartitionData(
            index,
            partition.leader_epoch - stale,
            new_isr_with_epochs=states,
            leader_recovery_state=int(partition.recovering and len(isr) == 1),
            partition_epoch=partition.partition_epoch,
        )
        request = AlterPartitionRequest(leader.id, leader.epoch, [TopicData(topic.id, [asked])])
        outcome = alter_partition(self.image, request, self.allowed)
        reply = outcome.result.topics[0].partitions[0]
        self.apply(outcome.changes)
        after = self.image.topics[topic.name].partitions[index]
        if stale:
            assert reply.error_code == ErrorCode.FENCED_LEADER_EPOCH
        if reply.error_code == 0:
            assert set(reply.isr) == set(after.isr)
            assert (reply.leader_epoch, reply.partition_epoch) == (after.leader_epoch, after.partition_epoch)
            assert all(self.image.active(each) for each in isr)
            if resigns:
                assert alone
                assert not isr
                assert (after.leader, after.isr) == (partition.leader, partition.isr)
                assert after.leader_epoch > partition.leader_epoch
        elif reply.error_code != ErrorCode.NEW_LEADER_ELECTED:
            assert after == partition
        elif resigns and not isr:
            assert alone
            assert self.unclean or not self.image.active(leader.id)
        elif resigns:
            assert after.leader in isr
            assert set(after.isr) <= set(isr) <= set(partition.isr)
            assert after.leader_epoch > partition.leader_epoch

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data(), wanted=st.lists(IDS, min_size=1, max_size=4, unique=True))
    def move(self, data: st.DataObject, wanted: list[int]) -> None:
        topic, index, _ = self.some_partition(data)
        self.reassign(topic.name, index, wanted)

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def cancel_move(self, data: st.DataObject) -> None:
        topic, index, partition = self.some_partition(data)
        code = self.reassign(topic.name, index, None)
        if not partition.reassigning:
            assert code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        elif code == 0:
            after = self.image.topics[topic.name].partitions[index]
            assert not after.reassigning
            assert set(after.replicas) == set(partition.replicas) - set(partition.adding)

    def reassign(self, topic: str, index: int, target: list[int] | None) -> int:
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(topic, [ReassignablePartition(index, target)])]
        )
        outcome = alter_reassignments(self.image, request, self.allowed)
        self.apply(outcome.changes)
        return outcome.result.responses[0].partitions[0].error_code

    @rule(kind=st.sampled_from([PREFERRED, UNCLEAN]))
    def elect(self, kind: int) -> None:
        if kind == PREFERRED or self.unclean:
            self.apply(elect_leaders(self.image, ElectLeadersRequest(kind, None)).changes)

    @rule(full=st.sets(IDS))
    def fill_disks(self, full: set[int]) -> None:
        self.apply(brokers.move_off_full_disks(self.image, full))
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                if partition.leader in full:
                    assert not any(self.image.active(each) for each in partition.isr if each not in full)

    @rule()
    def balance(self) -> None:
        self.apply(balance_leaders(self.image, 10))
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                first = partition.replicas[0]
                if self.image.active(first) and first in partition.isr:
                    mine = [
                        each
                        for other in self.image.topics.values()
                        for each in other.partitions
                        if each.replicas[0] == first
                    ]
                    astray = [each for each in mine if each.leader != first]
                    assert 100 * len(astray) <= 10 * len(mine) or any(
                        first not in each.isr for each in astray
                    )

    @invariant()
    def a_leader_is_alive_and_in_sync(self) -> None:
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                if partition.leader != NO_LEADER:
                    assert partition.leader in partition.isr
                    assert self.image.alive(partition.leader)

    @invariant()
    def the_isr_is_never_empty_and_part_of_the_replicas(self) -> None:
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                assert partition.isr
                assert set(partition.isr) <= set(partition.replicas)
                assert len(set(partition.replicas)) == len(partition.replicas)
                assert set(partition.adding) | set(partition.removing) <= set(partition.replicas)
                assert not set(partition.adding) & set(partition.removing)

    @invariant()
    def nobody_is_leaderless_while_a_member_in_sync_can_lead(self) -> None:
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                if partition.leader == NO_LEADER:
                    assert not any(self.image.active(member) for member in partition.isr)

    @invariant()
    def epochs_only_grow_and_a_new_leader_has_a_new_one(self) -> None:
        for topic in self.image.topics.values():
            for index, partition in enumerate(topic.partitions):
                before = self.ever.get((topic.id, index))
                self.ever[topic.id, index] = partition
                if before is None or before == partition:
                    continue
                assert partition.partition_epoch > before.partition_epoch
                assert partition.leader_epoch >= before.leader_epoch
                if partition.leader != before.leader:
                    assert partition.leader_epoch > before.leader_epoch
                if not self.unclean and partition.leader not in (NO_LEADER, before.leader):
                    self.check_clean_election(before, partition)

                if before.reassigning and not partition.reassigning:
                    cancelled = set(partition.replicas) == set(before.replicas) - set(before.adding)
                    assert cancelled or set(partition.replicas) <= set(partition.isr)

    def check_clean_election(self, before: Partition, after: Partition) -> None:
        """With unclean election off, a new leader was in sync before, or joined the ISR while another held it."""
        assert after.leader in before.isr or before.leader != NO_LEADER

    @invariant()
    def what_moves_is_listed(self) -> None:
        listed = list_reassignments(self.image, ListPartitionReassignmentsRequest(topics=None))
        found = {(topic.name, each.partition_index) for topic in listed.topics for each in topic.partitions}
        moving = {
            (topic.name, index)
            for topic in self.image.topics.values()
            for index, partition in enumerate(topic.partitions)
            if partition.reassigning
        }
        assert found == moving


class UncleanRules(ControllerRules):
    """The same with unclean election on: a partition then has a leader whenever any replica is up."""

    unclean = True

    @invariant()
    def a_live_replica_is_enough_for_a_leader(self) -> None:
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                if any(self.image.active(replica) for replica in partition.replicas):
                    assert partition.leader != NO_LEADER


ControllerRules.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
UncleanRules.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestControllerRules = ControllerRules.TestCase
TestUncleanRules = UncleanRules.TestCase


def test_an_election_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KafkaError, match="Unknown election type 7"):
        elect_leaders(MetadataImage(), ElectLeadersRequest(7, None))

"""The internal topics: committed offsets, the state of transactions and the state of share groups."""

from __future__ import annotations

from headrace.server.config.broker import BrokerConfig
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})


def internal_topic(name: str, config: BrokerConfig, standalone: bool) -> CreatableTopic:
    """How to create an internal topic.

    A standalone broker keeps one replica. In a cluster the replication factor is the configured one, and creating the topic
    fails until there are enough brokers, so that no offset ever has fewer replicas.
    """
    if name == CONSUMER_OFFSETS:
        partitions = config.integer("offsets.topic.num.partitions")
        factor = config.integer("offsets.topic.replication.factor")
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.integer("offsets.topic.segment.bytes")),
        }
    elif name == TRANSACTION_STATE:
        partitions = config.integer("transaction.state.log.num.partitions")
        factor = config.integer("transaction.state.log.replication.factor")
        in_sync = 1 if standalone else config.integer("transaction.state.log.min.isr")
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": str(config.integer("transaction.state.log.segment.bytes")),
            "min.insync.replicas": str(in_sync),
            "unclean.leader.election.enable": "false",
        }
    elif name == SHARE_GROUP_STATE:
        partitions = config.integer("share.coordinator.state.topic.num.partitions")
        factor = config.integer("share.coordinator.state.topic.replication.factor")
        in_sync = 1 if standalone else config.integer("share.coordinator.state.topic.min.isr")
        settings = {
            # Updates of one key build on each other, so compaction would lose some; the coordinator deletes by offset.
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "compression.type": "producer",
            "segment.bytes": str(config.integer("share.coordinator.state.topic.segment.bytes")),
            "min.insync.replicas": str(in_sync),
            "unclean.leader.election.enable": "false",
        }
    else:
        raise ValueError(f"{name} is not an internal topic")
    configs = [CreatableTopicConfig(key, value) for key, value in settings.items()]
    return CreatableTopic(name, partitions, 1 if standalone else factor, configs=configs)

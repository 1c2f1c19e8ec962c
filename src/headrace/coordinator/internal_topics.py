"""The topics that coordinators keep their state in: how they are made, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.config.broker import BrokerConfig
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    partitions: str
    replication_factor: str
    """The settings that say how many."""
    configs: Mapping[str, str]
    """Kafka's values for the topic's own settings; a value that starts with a colon names a broker setting."""

    def creation(self, config: BrokerConfig) -> CreatableTopic:
        """What to ask the controller for. A lone broker, which no other can join, keeps one replica."""
        lone = not config.string("zookeeper.connect")
        return CreatableTopic(
            self.name,
            config.integer(self.partitions),
            1 if lone else config.integer(self.replication_factor),
            configs=[
                CreatableTopicConfig(name, str(config.integer(value[1:])) if value[0] == ":" else value)
                for name, value in self.configs.items()
                if not (lone and name == "min.insync.replicas")
            ],
        )


OFFSETS = InternalTopic(
    OFFSETS_TOPIC,
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": ":offsets.topic.segment.bytes",
    },
)
TRANSACTIONS = InternalTopic(
    TRANSACTIONS_TOPIC,
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": ":transaction.state.log.segment.bytes",
        "min.insync.replicas": ":transaction.state.log.min.isr",
        "unclean.leader.election.enable": "false",
    },
)

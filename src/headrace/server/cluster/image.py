"""The metadata image: brokers, topics, partitions and settings as of one point in the change sequence.

An image never changes. `ImageBuilder` makes the next one: it copies only the tables that a change touches and shares everything
else, so that one change among 5,000 partitions costs microseconds.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

NO_LEADER = -1

AccessRule = tuple[int, str, int, str, str, int, int]
"""An ACL: resource type, resource name, pattern type, principal, host, operation, permission."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""What a quota applies to: (("user", "alice"), ("client-id", None)); None stands for the default entity."""


class DelegationToken(NamedTuple):
    """A delegation token; its HMAC is made from its id and the brokers' secret key, and is not kept."""

    id: str
    owner: str
    """As a principal, `User:alice`, like the others."""
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """It cannot be renewed beyond this time."""

    def may_renew(self, principal: str) -> bool:
        return principal == self.owner or principal in self.renewers

    def expired(self, now_ms: int) -> bool:
        return now_ms > min(self.expires_ms, self.max_ms)


class LinkState(enum.Enum):
    """Whether a mirror link copies."""

    ACTIVE = "active"
    PAUSED = "paused"


class MirrorState(enum.Enum):
    """Where a mirrored topic stands. It is read-only in all states but the last; `server/cluster/mirror_states.py` has the transitions."""

    MIRRORING = "mirroring"
    FAILED = "failed"
    """The source no longer continues what is here: an operator decides."""
    DISCARDING = "discarding"
    """An operator gave up what only this cluster has: it is cut off until every partition agrees with the source."""
    FAILING_OVER = "failing over"
    """Nothing more is copied; the leaders report where their partitions end."""
    FAILED_OVER = "failed over"
    """It belongs to this cluster: producers write to it."""


@dataclass(frozen=True, slots=True)
class MirrorLink:
    """A link to another cluster, whose topics are mirrored here."""

    name: str
    topics: tuple[str, ...]
    """Patterns of topic names, as regular expressions."""
    settings: Mapping[str, str] = field(repr=False)
    """How to reach the source, by the Java client's names. They may hold secrets."""
    groups: tuple[str, ...] = ()
    """Patterns of the groups whose offsets are mirrored."""
    throttle: int = 0
    """Bytes per second that each broker may take from the source; 0 for no limit."""
    state: LinkState = LinkState.ACTIVE
    adopts: bool = False
    """It takes over topics that exist here, if the source continues them."""


class MirrorEnd(NamedTuple):
    """Where a mirrored partition ended when it was failed over."""

    offset: int
    """The first offset that was not mirrored."""
    source_offset: int
    """The end of the source's partition as it was last known; -1 if it never was."""
    complete_until_ms: int
    """Everything the source had acknowledged by then is here; -1 if it never caught up."""
    failed_over_ms: int


@dataclass(frozen=True, slots=True)
class MirroredTopic:
    """What a link says of one topic of this cluster."""

    link: str
    source_id: uuid.UUID
    state: MirrorState
    reason: str = ""
    """Why it failed, as a sentence."""
    ends: Mapping[int, MirrorEnd] = field(default_factory=dict)
    """By partition, once it is failed over."""
    agreed: tuple[int, ...] = ()
    """While it is DISCARDING: the partitions that agree with the source."""

    @property
    def read_only(self) -> bool:
        return self.state is not MirrorState.FAILED_OVER


_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
"""One shared object, so that `is` shows whether settings changed."""


class ResourceType(enum.IntEnum):
    """What can have settings, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """What settings belong to; a BROKER without a name is the default for the whole cluster."""

    type: ResourceType
    name: str


class Endpoint(NamedTuple):
    """The address of a broker's listener."""

    listener: str
    host: str
    port: int
    protocol: str


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of the cluster. `epoch` grows with every registration; a fenced broker is not alive."""

    id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    host: str | None = None
    fenced: bool = False
    in_controlled_shutdown: bool = False

    @property
    def active(self) -> bool:
        """Whether it may be given leadership and new replicas."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class Partition(NamedTuple):
    """One partition. `replicas` starts with the preferred leader; epochs only grow."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    """True after an unclean election, until the leader reports that it has recovered."""

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its partitions, in order."""

    name: str
    id: uuid.UUID
    partitions: tuple[Partition, ...]

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The whole cluster as of change number `offset`; -1 before the first."""

    offset: int = -1
    cluster_id: str = ""
    controller_id: int = -1
    controller_epoch: int = 0
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, Topic] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    acls: Mapping[str, AccessRule] = field(default_factory=dict)
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    scram: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict, repr=False)
    tokens: Mapping[str, DelegationToken] = field(default_factory=dict)
    links: Mapping[str, MirrorLink] = field(default_factory=dict)
    mirrored: Mapping[uuid.UUID, MirroredTopic] = field(default_factory=dict)
    """By the id of the topic in this cluster."""

    def partition(self, topic: str, index: int) -> Partition | None:
        found = self.topics.get(topic)
        return found.partition(index) if found is not None else None

    def alive(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.active

    def topic_configs(self, topic: str) -> Mapping[str, str]:
        return self.configs.get(ConfigResource(ResourceType.TOPIC, topic), _NO_SETTINGS)

    def broker_configs(self, broker_id: int) -> Mapping[str, str]:
        return self.configs.get(ConfigResource(ResourceType.BROKER, str(broker_id)), _NO_SETTINGS)

    def cluster_configs(self) -> Mapping[str, str]:
        """The cluster-wide dynamic defaults."""
        return self.configs.get(ConfigResource(ResourceType.BROKER, ""), _NO_SETTINGS)

    def partitions_of(self, broker_id: int) -> Iterator[tuple[Topic, int, Partition]]:
        """Every partition with a replica on this broker."""
        for topic in self.topics.values():
            for index, partition in enumerate(topic.partitions):
                if broker_id in partition.replicas:
                    yield topic, index, partition


class ImageBuilder:
    """Builds the next image. Each table is copied at its first change, then changed in place."""

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.offset = base.offset
        self.cluster_id = base.cluster_id
        self.controller_id = base.controller_id
        self.controller_epoch = base.controller_epoch
        self.next_producer_id = base.next_producer_id
        self._brokers: dict[int, Broker] | None = None
        self._topics: dict[str, Topic] | None = None
        self._topics_by_id: dict[uuid.UUID, Topic] | None = None
        self._configs: dict[ConfigResource, Mapping[str, str]] | None = None
        self._features: dict[str, int] | None = None
        self._acls: dict[str, AccessRule] | None = None
        self._quotas: dict[QuotaEntity, Mapping[str, float]] | None = None
        self._scram: dict[tuple[str, str], Mapping[str, str]] | None = None
        self._tokens: dict[str, DelegationToken] | None = None
        self._links: dict[str, MirrorLink] | None = None
        self._mirrored: dict[uuid.UUID, MirroredTopic] | None = None

    @property
    def brokers(self) -> dict[int, Broker]:
        if self._brokers is None:
            self._brokers = dict(self.base.brokers)
        return self._brokers

    @property
    def configs(self) -> dict[ConfigResource, Mapping[str, str]]:
        if self._configs is None:
            self._configs = dict(self.base.configs)
        return self._configs

    @property
    def features(self) -> dict[str, int]:
        if self._features is None:
            self._features = dict(self.base.features)
        return self._features

    @property
    def acls(self) -> dict[str, AccessRule]:
        if self._acls is None:
            self._acls = dict(self.base.acls)
        return self._acls

    @property
    def quotas(self) -> dict[QuotaEntity, Mapping[str, float]]:
        if self._quotas is None:
            self._quotas = dict(self.base.quotas)
        return self._quotas

    @property
    def scram(self) -> dict[tuple[str, str], Mapping[str, str]]:
        if self._scram is None:
            self._scram = dict(self.base.scram)
        return self._scram

    @property
    def tokens(self) -> dict[str, DelegationToken]:
        if self._tokens is None:
            self._tokens = dict(self.base.tokens)
        return self._tokens

    @property
    def links(self) -> dict[str, MirrorLink]:
        if self._links is None:
            self._links = dict(self.base.links)
        return self._links

    @property
    def mirrored(self) -> dict[uuid.UUID, MirroredTopic]:
        if self._mirrored is None:
            self._mirrored = dict(self.base.mirrored)
        return self._mirrored

    def topic(self, topic_id: uuid.UUID) -> Topic | None:
        table = self._topics_by_id if self._topics_by_id is not None else self.base.topics_by_id
        return table.get(topic_id)

    def put_topic(self, topic: Topic) -> None:
        names, ids = self._topic_tables()
        names[topic.name] = topic
        ids[topic.id] = topic

    def remove_topic(self, topic: Topic) -> None:
        names, ids = self._topic_tables()
        del names[topic.name]
        del ids[topic.id]
        if topic.id in (self.base.mirrored if self._mirrored is None else self._mirrored):
            del self.mirrored[topic.id]

    def _topic_tables(self) -> tuple[dict[str, Topic], dict[uuid.UUID, Topic]]:
        if self._topics is None or self._topics_by_id is None:
            self._topics = dict(self.base.topics)
            self._topics_by_id = dict(self.base.topics_by_id)
        return self._topics, self._topics_by_id

    def build(self) -> MetadataImage:
        base = self.base
        return MetadataImage(
            offset=self.offset,
            cluster_id=self.cluster_id,
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            brokers=base.brokers if self._brokers is None else self._brokers,
            topics=base.topics if self._topics is None else self._topics,
            topics_by_id=base.topics_by_id if self._topics_by_id is None else self._topics_by_id,
            configs=base.configs if self._configs is None else self._configs,
            features=base.features if self._features is None else self._features,
            next_producer_id=self.next_producer_id,
            acls=base.acls if self._acls is None else self._acls,
            quotas=base.quotas if self._quotas is None else self._quotas,
            scram=base.scram if self._scram is None else self._scram,
            tokens=base.tokens if self._tokens is None else self._tokens,
            links=base.links if self._links is None else self._links,
            mirrored=base.mirrored if self._mirrored is None else self._mirrored,
        )

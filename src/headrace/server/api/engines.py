"""The engines of one broker, as its handlers see them. Built once by the node and never replaced."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.clock import Clock
from headrace.server.api.encoded_topics import EncodedTopics
from headrace.server.cluster.auto_topic_creation import AutoTopicCreation
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.peers import Peers
from headrace.server.cluster.producer_ids import ProducerIds
from headrace.server.config.broker import BrokerConfig
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.log.manager import LogManager
from headrace.server.log.moves import DiskMoves
from headrace.server.net.outbox import Outbox
from headrace.server.quotas.client_quotas import ClientQuotas
from headrace.server.replica.replicas import Replicas
from headrace.server.replica.sessions import FetchSessions
from headrace.server.replica.turn import Turn
from headrace.server.security.authorizer import AllowAll, Authorizer, StandardAuthorizer
from headrace.server.security.permitted import PermittedTopics
from headrace.server.transactions.attach import Transactions

if TYPE_CHECKING:
    from headrace.server.mirror.mirrors import Mirrors
    from headrace.server.security.live_tls import LiveTls
    from headrace.server.share.attach import Sharing
    from headrace.server.telemetry.clients import Telemetry


@dataclass(slots=True)
class Engines:
    """What handlers ask; most of them need a few."""

    broker_id: int
    clock: Clock
    disk: Executor
    """Threads for whatever waits for a disk."""
    cluster: ClusterNode
    peers: Peers
    auto_topic_creation: AutoTopicCreation
    logs: LogManager
    replicas: Replicas
    sessions: FetchSessions
    producer_ids: ProducerIds
    groups: GroupCoordinator
    transactions: Transactions
    moves: DiskMoves
    """Replicas on their way to another data directory."""
    use_sharing: Callable[[], Sharing]
    turn: Turn
    quotas: ClientQuotas
    use_telemetry: Callable[[], Telemetry]
    use_mirrors: Callable[[], Mirrors]
    authorizer: Authorizer = field(default_factory=AllowAll)
    tls: LiveTls | None = None
    """Of this broker's listeners."""
    guarded: bool = field(init=False)
    """Whether the authorizer has to be asked: not where it allows all."""
    outbox: Outbox = field(init=False)
    acls: StandardAuthorizer | None = field(init=False)
    """The authorizer, where it decides by ACLs."""
    permitted_topics: PermittedTopics | None = field(init=False)
    encoded_topics: EncodedTopics = field(default_factory=EncodedTopics)
    """The encoded topics of Metadata replies."""

    def __post_init__(self) -> None:
        self.outbox = Outbox(self.turn)
        self.guarded = not isinstance(self.authorizer, AllowAll)
        self.acls = self.authorizer if isinstance(self.authorizer, StandardAuthorizer) else None
        # What a class derived from it decides may depend on more than ACLs.
        if type(self.authorizer) is StandardAuthorizer:
            self.permitted_topics = PermittedTopics(self.authorizer)
        else:
            self.permitted_topics = None

    @property
    def sharing(self) -> Sharing:
        """Share groups; they begin when they are first used."""
        return self.use_sharing()

    @property
    def mirrors(self) -> Mirrors:
        """Mirror links; they begin when they are first used, or the cluster has one."""
        return self.use_mirrors()

    @property
    def telemetry(self) -> Telemetry:
        """What clients push; it begins when one asks what to push, or the metrics are served."""
        return self.use_telemetry()

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings as they are now, dynamic ones included."""
        return self.cluster.config

    @property
    def fetch_max_bytes(self) -> int:
        return self.config.integer("fetch.max.bytes")

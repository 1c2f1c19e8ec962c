"""The clients whose metrics the cluster wants: what each is asked for, whether it may push now, and the last it pushed.

The rules are those of Kafka's ClientMetricsManager. A client's metrics are cumulative (the reply to GetTelemetrySubscriptions asks
for that), so the last push is the whole truth and a lost one costs nothing. Everything is bounded: the number of clients, the size
of a push before and after decompression, what is kept of one and of all, and how many pushes wait to be read. A thread reads them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from headrace.clock import Clock
from headrace.server.cluster.changes import Change
from headrace.server.cluster.ids import format_id, random_id
from headrace.server.cluster.image import MetadataImage, ResourceType
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.telemetry.subscriptions import (
    Asked,
    ClientIdentity,
    Subscription,
    ask,
    read_subscriptions,
)
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.server.telemetry.push import Push

MOST_CLIENTS = 16_384
"""As in Kafka. One more, and the one that was silent longest is forgotten."""
MOST_KEPT_BYTES = 64 * 1024 * 1024
"""What the last pushes of all clients may take together."""
MOST_WAITING = 64
"""Pushes that may wait to be read."""
SHORTEST_MEMORY_MS = 60_000
"""A silent client is remembered for three push intervals, and at least so long."""
SWEEP_MS = 10_000

_NEVER = float("-inf")


class _Life(Enum):
    OPEN = auto()
    TERMINATED = auto()
    """It has pushed for the last time."""


@dataclass(slots=True)
class TelemetryClient:
    """One client instance."""

    id: uuid.UUID
    identity: ClientIdentity
    asked: Asked
    subscriptions_version: int
    seen_ms: float
    life: _Life = _Life.OPEN
    got_ms: float = _NEVER
    """When it was last told what to push, and when it last pushed."""
    pushed_ms: float = _NEVER
    last_error: ErrorCode = ErrorCode.NONE
    push: Push | None = None
    pushes: int = 0

    @property
    def terminated(self) -> bool:
        return self.life is _Life.TERMINATED

    def forgotten_at(self) -> float:
        return self.seen_ms + max(3 * self.asked.interval_ms, SHORTEST_MEMORY_MS)

    def may_get(self, now_ms: float) -> bool:
        """Not before its next push is due, unless it was just told to ask again."""
        if now_ms - max(self.got_ms, self.pushed_ms) >= self.asked.interval_ms:
            self.got_ms = now_ms
            return True
        return self.last_error in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

    def may_push(self, now_ms: float) -> bool:
        """The first push after it was told what to push, and one per interval."""
        if self.got_ms > self.pushed_ms or now_ms - self.pushed_ms >= self.asked.interval_ms:
            self.pushed_ms = now_ms
            return True
        return False


class Telemetry:
    """All of them, and the cluster's subscriptions."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._subscriptions: list[Subscription] = []
        self._version = 0
        """Of the subscriptions: what a client is asked for is worked out again when it changes."""
        self._clients: OrderedDict[uuid.UUID, TelemetryClient] = OrderedDict()
        """The one that was silent longest comes first."""
        self._kept_bytes = 0
        self._waiting = 0
        self._swept_ms = _NEVER
        self._reader: ThreadPoolExecutor | None = None

    def follow(self, cluster: ClusterNode) -> None:
        """Use the subscriptions of the cluster, now and whenever they change."""
        self._subscribe(cluster.image)
        cluster.subscribe(self._changed)

    def _changed(self, old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        if any(
            isinstance(change, ConfigsChanged) and change.resource.type is ResourceType.CLIENT_METRICS
            for change in changes
        ):
            self._subscribe(new)

    def _subscribe(self, image: MetadataImage) -> None:
        self._subscriptions = read_subscriptions(image.configs)
        self._version += 1

    def close(self) -> None:
        if self._reader is not None:
            self._reader.shutdown(cancel_futures=True)

    def tell_what_to_push(self, instance: uuid.UUID, identity: ClientIdentity) -> TelemetryClient:
        """The client, with what it is asked for; a nil id is a new client. KafkaError when it asks too often."""
        client = self._client(self._new_id() if instance.int == 0 else instance, identity)
        if not client.may_get(self._now_ms()):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _too_early(client))
        client.last_error = ErrorCode.NONE
        return client

    def admit_push(
        self,
        instance: uuid.UUID,
        identity: ClientIdentity,
        subscription_id: int,
        terminating: bool,
        codec: int,
        size: int,
        largest: int,
    ) -> TelemetryClient:
        """The client that may push now; KafkaError when it may not."""
        if instance.int in (0, 1):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Invalid request from the client [{format_id(instance)}], invalid client instance id",
            )
        client = self._client(instance, identity)
        try:
            self._check_push(client, subscription_id, terminating, codec, size, largest)
        except KafkaError as error:
            client.last_error = error.code
            raise
        finally:
            if terminating:
                client.life = _Life.TERMINATED
        client.last_error = ErrorCode.NONE
        return client

    def _check_push(
        self,
        client: TelemetryClient,
        subscription_id: int,
        terminating: bool,
        codec: int,
        size: int,
        largest: int,
    ) -> None:
        if client.terminated:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Client [{format_id(client.id)}] sent the previous request with state terminating to TRUE, can not accept any "
                "requests after that",
            )
        if not client.may_push(self._now_ms()) and not terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, _too_early(client))
        if subscription_id != client.asked.id:
            raise KafkaError(
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
                f"Unknown client subscription id for the client [{format_id(client.id)}]",
            )
        if not Codec.NONE <= codec <= Codec.ZSTD:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"Unknown compression type [{codec}] is received in telemetry request from [{format_id(client.id)}]",
            )
        if size > largest:
            raise KafkaError(
                ErrorCode.TELEMETRY_TOO_LARGE,
                f"Telemetry request from [{format_id(client.id)}] is larger than the maximum allowed size [{largest}]",
            )

    async def take_push(self, client: TelemetryClient, codec: int, metrics: bytes) -> None:
        """Read a push and keep it in place of the last one; KafkaError when it cannot be read."""
        # Imported here: few clients push.
        from headrace.server.telemetry.push import UnreadablePush, read_push

        if self._waiting >= MOST_WAITING:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many clients push at the same time")
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, "telemetry")
        self._waiting += 1
        try:
            push = await asyncio.get_running_loop().run_in_executor(
                self._reader, read_push, Codec(codec), metrics, self._clock.now_ms()
            )
        except UnreadablePush as error:
            client.last_error = ErrorCode.INVALID_RECORD
            raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
        finally:
            self._waiting -= 1
        client.pushes += 1
        self._keep(client, push)

    def _keep(self, client: TelemetryClient, push: Push) -> None:
        self._drop_push(client)
        if self._clients.get(client.id) is not client:
            return  # It was forgotten meanwhile.
        if self._kept_bytes + push.size > MOST_KEPT_BYTES:
            push = push.emptied()
        client.push = push
        self._kept_bytes += push.size

    def _drop_push(self, client: TelemetryClient) -> None:
        if client.push is not None:
            self._kept_bytes -= client.push.size
            client.push = None

    def clients(self) -> Iterator[TelemetryClient]:
        """Those that are remembered."""
        self._sweep()
        return iter(tuple(self._clients.values()))

    def _client(self, instance: uuid.UUID, identity: ClientIdentity) -> TelemetryClient:
        now_ms = self._now_ms()
        if now_ms - self._swept_ms >= SWEEP_MS:
            self._sweep()
        client = self._clients.get(instance)
        if client is None:
            while len(self._clients) >= MOST_CLIENTS:
                self._forget(next(iter(self._clients.values())))
            asked = ask(self._subscriptions, identity, instance)
            client = self._clients[instance] = TelemetryClient(
                instance, identity, asked, self._version, now_ms
            )
            return client
        self._clients.move_to_end(instance)
        client.seen_ms = now_ms
        client.identity = identity
        if client.subscriptions_version != self._version:
            # It is as if the client had just come: it may ask, and push, at once.
            client.asked = ask(self._subscriptions, identity, instance)
            client.subscriptions_version = self._version
            client.got_ms = client.pushed_ms = _NEVER
            client.last_error = ErrorCode.NONE
        return client

    def _sweep(self) -> None:
        """Forget clients that were silent for too long."""
        now_ms = self._swept_ms = self._now_ms()
        for client in tuple(self._clients.values()):
            if now_ms >= client.forgotten_at():
                self._forget(client)

    def _forget(self, client: TelemetryClient) -> None:
        self._drop_push(client)
        del self._clients[client.id]

    def _new_id(self) -> uuid.UUID:
        while True:
            candidate = random_id()
            if candidate not in self._clients:
                return candidate

    def _now_ms(self) -> float:
        return self._clock.monotonic() * 1000


def _too_early(client: TelemetryClient) -> str:
    return f"Request from the client [{format_id(client.id)}] arrived before the next push interval time"

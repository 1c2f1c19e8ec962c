"""A small client: connections to brokers, who leads what, who coordinates what. Each call is one request; retrying is the caller's."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from headrace.link.aio import AsyncConnection
from headrace.link.errors import BrokerUnavailable
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import reply_number
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.schema import Request, Response
from tests.simulation.process import Process

R = TypeVar("R", bound=Response)

TIMEOUT = 5.0
GROUP, TRANSACTION = 0, 1


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, code: int) -> None:
        self.code = ErrorCode(code)
        super().__init__(self.code.name)


class Away(Exception):
    """No answer came: the request may or may not have been served."""


def check(code: int) -> None:
    if code:
        raise Refused(code)


class OrderedConnection(AsyncConnection):
    """Notes when a broker answers a request twice, not at all, or out of turn."""

    answered = 0

    def buffer_updated(self, nbytes: int) -> None:
        if self._frame is not None and self._filled + nbytes == len(self._frame):
            number = reply_number(self._frame)
            if number != self.answered + 1:
                raise AssertionError(
                    f"{self.address} answered request {number} after request {self.answered}"
                )
            self.answered = number
        super().buffer_updated(nbytes)


class Client:
    def __init__(self, name: str, process: Process, addresses: list[tuple[str, int]]) -> None:
        self.name = name
        self.process = process
        self.world = process.world
        self.random = process.world.stream(f"client {name}")
        self._addresses = addresses
        self._connections: dict[tuple[str, int], asyncio.Future[AsyncConnection]] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self.epochs: dict[tuple[str, int], int] = {}
        """Leader epochs, as the metadata told them with the leaders."""
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.random.uniform(0.7, 1.3))

    async def call(
        self, address: tuple[str, int], request: Request[R], version: int, timeout: float = TIMEOUT
    ) -> R:
        connection = await self.connection(address)
        try:
            return await connection.call(request, version, timeout)
        except (BrokerUnavailable, ConnectionError) as error:
            raise Away(str(error)) from None

    async def connection(self, address: tuple[str, int]) -> AsyncConnection:
        made = self._connections.get(address)
        if made is not None and made.done() and (made.exception() is not None or not made.result().open):
            made = None
        if made is None:
            connecting = OrderedConnection.connect(
                *address, self.name.encode(), self.process.clock, timeout=2.0
            )
            made = self._connections[address] = asyncio.ensure_future(connecting)
        try:
            return await asyncio.shield(made)
        except (BrokerUnavailable, ConnectionError) as error:
            raise Away(str(error)) from None

    def disconnect(self) -> None:
        """Lose every connection."""
        for made in self._connections.values():
            if made.done() and made.exception() is None:
                made.result().close()

    # Routing

    async def refresh(self, topics: list[str]) -> None:
        address = self.random.choice(self._addresses)
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=False
        )
        reply = await self.call(address, request, 12)
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in reply.brokers}
        for topic in reply.topics:
            for partition in topic.partitions:
                if topic.name is not None:
                    place = topic.name, partition.partition_index
                    if partition.leader_epoch >= self.epochs.get(
                        place, -1
                    ):  # Old news from a broker that lags.
                        self._leaders[place] = partition.leader_id
                        self.epochs[place] = partition.leader_epoch

    async def leader(self, topic: str, partition: int) -> tuple[str, int]:
        if (topic, partition) not in self._leaders:
            await self.refresh([topic])
        address = self._brokers.get(self._leaders.get((topic, partition), -1))
        if address is None:
            self.forget(topic, partition)
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE)
        return address

    def forget(self, topic: str, partition: int) -> None:
        self._leaders.pop((topic, partition), None)

    async def coordinator(self, kind: int, key: str) -> tuple[str, int]:
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        reply = await self.call(self.random.choice(self._addresses), request, 4)
        found = reply.coordinators[0]
        check(found.error_code)
        self._coordinators[kind, key] = (found.host, found.port)
        return found.host, found.port

    async def ask_coordinator(
        self, kind: int, key: str, request: Request[R], version: int, timeout: float = TIMEOUT
    ) -> R:
        address = await self.coordinator(kind, key)
        try:
            return await self.call(address, request, version, timeout)
        except Away:
            self._coordinators.pop((kind, key), None)
            raise

    def forget_coordinator(self, kind: int, key: str) -> None:
        self._coordinators.pop((kind, key), None)

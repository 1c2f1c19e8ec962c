"""The admin for asyncio: the same calls, each waiting in a thread so that the event loop does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from headrace.client.admin import Admin
from headrace.client.config import Config

P = ParamSpec("P")
T = TypeVar("T")


def _in_thread(
    method: Callable[Concatenate[Admin, P], T],
) -> Callable[Concatenate[AsyncAdmin, P], Awaitable[T]]:
    def call(self: AsyncAdmin, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        return asyncio.to_thread(method, self.sync, *args, **kwargs)

    call.__doc__ = method.__doc__
    return call


class AsyncAdmin:
    """Look at a cluster and change it, from asyncio.

    >>> async with AsyncAdmin("localhost:9092") as admin:
    ...     await admin.create_topic("orders", partitions=6)
    """

    def __init__(self, config: Config = None, /, **settings: object) -> None:
        self.sync = Admin(config, **settings)

    topics = _in_thread(Admin.topics)
    topic = _in_thread(Admin.topic)
    partitions_of = _in_thread(Admin.partitions_of)
    create_topic = _in_thread(Admin.create_topic)
    delete_topic = _in_thread(Admin.delete_topic)
    add_partitions = _in_thread(Admin.add_partitions)
    delete_records = _in_thread(Admin.delete_records)
    topic_config = _in_thread(Admin.topic_config)
    broker_config = _in_thread(Admin.broker_config)
    set_topic_config = _in_thread(Admin.set_topic_config)
    groups = _in_thread(Admin.groups)
    group = _in_thread(Admin.group)
    delete_group = _in_thread(Admin.delete_group)
    group_offsets = _in_thread(Admin.group_offsets)
    set_group_offsets = _in_thread(Admin.set_group_offsets)
    reset_group = _in_thread(Admin.reset_group)
    offsets = _in_thread(Admin.offsets)

    async def close(self) -> None:
        await asyncio.to_thread(self.sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

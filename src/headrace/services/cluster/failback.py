"""The failback strategy: a failed call is answered with nothing and made again later, in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from headrace.services.cluster.directory_base import Directory
from headrace.services.cluster.loadbalance import LoadBalance
from headrace.services.cluster.strategies import ClusterInvoker
from headrace.services.errors import RpcException
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker

logger = logging.getLogger("headrace.services.cluster")

DEFAULT_TIMES = 3
DEFAULT_TASKS = 100
DEFAULT_PERIOD_MS = 5_000


class FailbackCluster(ClusterInvoker):
    """For notifications: each is tried again every five seconds, `retries` (3) times, `failbacktasks` (100) at once."""

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory)
        self._times = directory.url.get_int("retries", DEFAULT_TIMES) or DEFAULT_TIMES
        self._limit = directory.url.get_int("failbacktasks", DEFAULT_TASKS) or DEFAULT_TASKS
        self._seconds = directory.url.get_int("failback.period", DEFAULT_PERIOD_MS) / 1000
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, invocation: Invocation, invokers: Sequence[Invoker], balance: LoadBalance) -> Result:
        invoker: Invoker | None = None
        try:
            self.require(invokers, invocation)
            invoker = self.select(balance, invocation, invokers)
            return await self.ask(invoker, invocation)
        except RpcException as error:
            logger.error(
                "Failback to invoke method %s, wait for retry in background. Ignored exception: %s",
                invocation.method_name,
                error,
            )
            self._again(invocation, balance, invoker)
            return Result()

    def _again(self, invocation: Invocation, balance: LoadBalance, last: Invoker | None) -> None:
        if len(self._tasks) >= self._limit:
            logger.error(
                "Failback has %d calls waiting already: %s is dropped", self._limit, invocation.method_name
            )
            return
        task = asyncio.get_running_loop().create_task(self._retry(invocation, balance, last))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _retry(self, invocation: Invocation, balance: LoadBalance, last: Invoker | None) -> None:
        for _ in range(self._times):
            await asyncio.sleep(self._seconds)
            try:
                invokers = self.directory.candidates(invocation)
                self.require(invokers, invocation)
                last = self.select(balance, invocation, invokers, [last] if last else [])
                await self.ask(last, invocation)
                return
            except RpcException as error:
                logger.error(
                    "Failed retry to invoke method %s, waiting again: %s", invocation.method_name, error
                )
        logger.error(
            "Failed retry times exceed threshold (%d), We have to abandon, invocation->%r",
            self._times,
            invocation,
        )

    async def destroy(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await super().destroy()

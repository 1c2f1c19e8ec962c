"""Many providers as one invoker, and what to do when a call fails.

failover tries others (`retries`, 2), failfast gives up, failsafe answers nothing, failback (its own file) tries again
later, forking asks several at once (`forks`, 2), available takes the first available one. What an implementation
raised is an answer, not a failure, and is never retried.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Sequence

from headrace.services import points
from headrace.services.cluster.directory_base import Directory
from headrace.services.cluster.loadbalance import LoadBalance
from headrace.services.errors import RpcCode, RpcException
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.net import local_host
from headrace.services.release import RELEASE
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.cluster")

DEFAULT_RETRIES = 2
DEFAULT_FORKS = 2
DEFAULT_TIMEOUT_MS = 1_000


class ClusterInvoker(Invoker):
    """Chooses a provider from a directory and calls it; subclasses say what a failure means."""

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory.interface, directory.url)
        self.directory = directory
        self._balancers: dict[str, LoadBalance] = {}
        self._sticky: Invoker | None = None
        self._destroyed = False
        self._check_available = directory.url.get_bool("cluster.availablecheck", True)

    @property
    def is_available(self) -> bool:
        return self.directory.is_available

    @abstractmethod
    async def call(self, invocation: Invocation, invokers: Sequence[Invoker], balance: LoadBalance) -> Result:
        """Make the call with one or several of `invokers`."""

    async def invoke(self, invocation: Invocation) -> Result:
        if self._destroyed:
            raise RpcException(
                f"Rpc cluster invoker for {self.interface.name} on consumer {local_host()} use dubbo version "
                f"{RELEASE} is now destroyed! Can not invoke any more."
            )
        invokers = self.directory.candidates(invocation)
        name = "random"
        if invokers:
            name = invokers[0].url.method(invocation.method_name, "loadbalance", "random")
        balance = self._balancers.get(name)
        if balance is None:
            balance = self._balancers[name] = points.LOAD_BALANCERS.get(name)()
        return await self.call(invocation, invokers, balance)

    async def destroy(self) -> None:
        if not self._destroyed:
            self._destroyed = True
            await self.directory.destroy()

    # -- for the strategies ------------------------------------------------------------------------------

    @property
    def settings(self) -> URL:
        """The directory's current URL: rules may change it."""
        return self.directory.url

    def require(self, invokers: Sequence[Invoker], invocation: Invocation) -> None:
        if not invokers:
            raise RpcException(
                f"Failed to invoke the method {invocation.method_name} in the service {self.interface.name}. "
                f"No provider available for the service {self.settings.service_key} from registry "
                f"{self.settings.address} on the consumer {local_host()} using the dubbo version {RELEASE}. "
                "Please check if the providers have been started and registered.",
                RpcCode.NO_INVOKER,
                reason=f"no provider of {self.settings.service_key} is registered at {self.settings.address}",
            )

    def select(
        self,
        balance: LoadBalance,
        invocation: Invocation,
        invokers: Sequence[Invoker],
        tried: Sequence[Invoker] = (),
    ) -> Invoker:
        """One invoker: the last one again if calls stick to it, else the balancer's choice, not a tried one."""
        sticky = invokers[0].url.method_bool(invocation.method_name, "sticky", False)
        kept = self._sticky
        if sticky and kept in invokers and kept not in tried and kept is not None and kept.is_available:
            return kept
        chosen = self._select(balance, invocation, invokers, tried)
        if sticky:
            self._sticky = chosen
        return chosen

    def _select(
        self,
        balance: LoadBalance,
        invocation: Invocation,
        invokers: Sequence[Invoker],
        tried: Sequence[Invoker],
    ) -> Invoker:
        if len(invokers) == 1:
            return invokers[0]
        chosen = balance.select(invokers, invocation)
        if chosen not in tried and (chosen.is_available or not self._check_available):
            return chosen
        fresh = [i for i in invokers if i not in tried and (i.is_available or not self._check_available)]
        candidates = fresh or [invoker for invoker in tried if invoker.is_available]
        if candidates:
            return balance.select(candidates, invocation)
        return invokers[(list(invokers).index(chosen) + 1) % len(invokers)]

    async def ask(self, invoker: Invoker, invocation: Invocation) -> Result:
        """Call one provider, counted as under way while it lasts."""
        name = invocation.method_name
        invoker.active[name] += 1
        try:
            return await invoker.invoke(invocation)
        finally:
            invoker.active[name] -= 1


class FailoverCluster(ClusterInvoker):
    """Tries other providers, `retries` times."""

    async def call(self, invocation: Invocation, invokers: Sequence[Invoker], balance: LoadBalance) -> Result:
        self.require(invokers, invocation)
        name = invocation.method_name
        attempts = max(1, self.settings.method_int(name, "retries", DEFAULT_RETRIES) + 1)
        tried: list[Invoker] = []
        last: RpcException | None = None
        for attempt in range(attempts):
            if attempt:
                invokers = self.directory.candidates(invocation)
                self.require(invokers, invocation)
            invoker = self.select(balance, invocation, invokers, tried)
            tried.append(invoker)
            try:
                result = await self.ask(invoker, invocation)
            except RpcException as error:
                if error.code in (RpcCode.BIZ, RpcCode.SERIALIZATION):
                    raise
                last = error
                continue
            if last is not None:
                logger.warning(
                    "Although retry the method %s in the service %s was successful by the provider %s, "
                    "but there have been failed providers %s. Last error is: %s",
                    name,
                    self.interface.name,
                    invoker.url.address,
                    sorted({each.url.address for each in tried[:-1]}),
                    last,
                )
            return result
        assert last is not None
        providers = sorted({each.url.address for each in tried})
        raise RpcException(
            f"Failed to invoke the method {name} in the service {self.interface.name}. Tried {attempts} times of "
            f"the providers {providers} ({len(providers)}/{len(invokers)}) from the registry {self.settings.address} "
            f"on the consumer {local_host()} using the dubbo version {RELEASE}. Last error is: {last}",
            RpcCode(last.code),
            reason=last.reason,
        )


class FailfastCluster(ClusterInvoker):
    """One attempt: for calls that must not be made twice."""

    async def call(self, invocation: Invocation, invokers: Sequence[Invoker], balance: LoadBalance) -> Result:
        self.require(invokers, invocation)
        invoker = self.select(balance, invocation, invokers)
        try:
            return await self.ask(invoker, invocation)
        except RpcException as error:
            if error.code == RpcCode.BIZ:
                raise
            raise RpcException(
                f"Failfast invoke providers {invoker.url} {type(balance).__name__} select from all providers for "
                f"service {self.interface.name} method {invocation.method_name} on consumer {local_host()} use "
                f"dubbo version {RELEASE}, but no luck to perform the invocation. Last error is: {error}",
                RpcCode(error.code),
                reason=error.reason,
            ) from error


class FailsafeCluster(ClusterInvoker):
    """A failure is logged and answered with nothing: for calls that are not worth an error."""

    async def call(self, invocation: Invocation, invokers: Sequence[Invoker], balance: LoadBalance) -> Result:
        try:
            self.require(invokers, invocation)
            return await self.ask(self.select(balance, invocation, invokers), invocation)
        except RpcException as error:
            logger.error("Failsafe ignore exception: %s", error)
            return Result()


class ForkingCluster(ClusterInvoker):
    """Asks `forks` providers at once and takes the first answer."""

    async def call(self, invocation: Invocation, invokers: Sequence[Invoker], balance: LoadBalance) -> Result:
        self.require(invokers, invocation)
        forks = self.settings.method_int(invocation.method_name, "forks", DEFAULT_FORKS)
        timeout_ms = self.settings.method_int(invocation.method_name, "timeout", DEFAULT_TIMEOUT_MS)
        chosen: list[Invoker] = []
        if forks <= 0 or forks >= len(invokers):
            chosen = list(invokers)
        else:
            for _ in range(forks):
                invoker = self.select(balance, invocation, invokers, chosen)
                if invoker not in chosen:
                    chosen.append(invoker)
        asked = {asyncio.ensure_future(self.ask(invoker, invocation)) for invoker in chosen}
        last: RpcException | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                for next_answer in asyncio.as_completed(asked):
                    try:
                        return await next_answer
                    except RpcException as error:
                        last = error
        except TimeoutError:
            last = last or RpcException("no provider answered in time", RpcCode.TIMEOUT)
        finally:
            for task in asked:
                task.cancel()
        addresses = [invoker.url.address for invoker in chosen]
        raise RpcException(
            f"Failed to forking invoke provider {addresses}, but no luck to perform the invocation. "
            f"Last error is: {last}",
            RpcCode(last.code) if last else RpcCode.UNKNOWN,
            reason=last.reason if last else "",
        )


class AvailableCluster(ClusterInvoker):
    """The first available one, the default registry's before others."""

    async def call(self, invocation: Invocation, invokers: Sequence[Invoker], balance: LoadBalance) -> Result:
        ordered = sorted(invokers, key=lambda invoker: not invoker.url.get_bool("registry.default", False))
        for invoker in ordered:
            if invoker.is_available:
                return await invoker.invoke(invocation)
        raise RpcException(f"No provider available in {[str(i.url) for i in invokers]}", RpcCode.NO_INVOKER)

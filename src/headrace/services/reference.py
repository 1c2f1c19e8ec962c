"""A reference to a service: found in the process, at an address, or through registries.

`get()` gives an object with the interface's methods; the providers behind it come and go without its noticing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

from headrace.services import points
from headrace.services.cluster.directory import merge_url
from headrace.services.cluster.directory_base import StaticDirectory
from headrace.services.config.base import is_name, is_names, setting
from headrace.services.config.complete import (
    complete,
    load_metadata_report,
    load_monitor,
    load_registries,
    surroundings,
)
from headrace.services.config.settings import ConsumerConfig, ConsumerSettings, MethodConfig
from headrace.services.errors import ConfigError, RpcCode, RpcException, ServicesError
from headrace.services.export_url import append_methods, method_names
from headrace.services.generic import GenericService
from headrace.services.interface import InterfaceModel, describe, interface_name
from headrace.services.invoker import Invoker
from headrace.services.models import ConsumerModel
from headrace.services.net import is_any, local_host
from headrace.services.protocols.injvm import InjvmProtocol
from headrace.services.release import runtime_parameters
from headrace.services.runtime import Runtime, default_runtime
from headrace.services.url import LOCALHOST, URL, build_key, encode, is_true, to_query, to_text

logger = logging.getLogger("headrace.services")
T = TypeVar("T")


@dataclass(kw_only=True)
class ReferenceConfig(ConsumerSettings, Generic[T]):
    """One service used: its interface and where and how to call it."""

    TAG: ClassVar[str] = "reference"

    interface: type[T] | str | None = None
    interface_name: str | None = setting(key="interface", check=is_name)
    url: str | None = setting(excluded=True)
    protocol: str | None = setting(check=is_names)
    methods: list[MethodConfig] = field(default_factory=list)
    consumer: ConsumerConfig | None = None
    runtime: Runtime = field(default_factory=default_runtime)

    def __post_init__(self) -> None:
        self.urls: list[URL] = []
        self.destroyed = False
        self._model: InterfaceModel | None = None
        self._invoker: Invoker | None = None
        self._proxies: dict[bool, Any] = {}
        self._creating = asyncio.Lock()  # several threads may ask for the service first

    # -- what it is --------------------------------------------------------------------------------------

    @property
    def is_generic(self) -> bool:
        chosen = (
            self.generic if self.generic is not None else (self.consumer.generic if self.consumer else None)
        )
        return is_true(to_text(chosen))

    @property
    def should_init(self) -> bool:
        """Whether the application's start already gets the service; else its first `get` does."""
        chosen = self.consumer.init if self.init is None and self.consumer else self.init
        return chosen is True

    @property
    def model(self) -> InterfaceModel:
        if self._model is None:
            given = self.interface
            named = self.interface_name or (given if isinstance(given, str) else "")
            if self.is_generic:
                self._model = describe(GenericService, named or (interface_name(given) if given else ""))  # type: ignore[arg-type]
            else:
                assert isinstance(given, type)  # checked by `prepare`
                self._model = describe(given, named)
        return self._model

    def prepare(self) -> None:
        """Complete the settings and check every one of them."""
        runtime = self.runtime
        if self.interface is None and not self.interface_name:
            raise ConfigError("reference: interface is missing, give the class of the service's interface")
        self.consumer = self.consumer or runtime.consumer or ConsumerConfig()
        self.consumer.refresh(runtime.environment)
        complete(self, self.consumer, runtime)
        given = self.interface
        self.id = (
            self.id or self.interface_name or (interface_name(given) if isinstance(given, type) else given)
        )
        self.refresh(runtime.environment)
        if not self.is_generic and not isinstance(given, type):
            raise ConfigError(
                f"reference {self.id}: interface is only a name, give its class, or set generic=true to call without"
            )
        mistakes = []
        for method in self.methods:
            found = self.model.find(method.name or "")
            method.name = found.name if found is not None else method.name
            method.service = self.model.name
            method.refresh(runtime.environment)
            if found is None and method.name and not self.is_generic:
                mistakes.append(f"method {method.name}: the interface {self.model.name} has no such method")
        arguments = [argument for method in self.methods for argument in method.arguments]
        parts = [*surroundings(self), self.consumer, self, *self.methods, *arguments]
        for part in parts:
            mistakes += part.mistakes()
        if mistakes:
            raise ConfigError(*dict.fromkeys(mistakes))
        runtime.warn(part.warnings() for part in parts)

    # -- getting and letting go --------------------------------------------------------------------------

    def get(self) -> T:
        """The service, to be called as if it were here."""
        return cast(T, self.runtime.run(self._get(asynchronous=False)))

    async def get_async(self) -> T:
        """The service with every method awaited, whatever the interface says."""
        return cast(T, await self.runtime.run_async(self._get(asynchronous=True)))

    def get_generic(self) -> GenericService:
        """The service called by method name, with maps for objects."""
        self.generic = True
        return cast(GenericService, self.runtime.run(self._get(asynchronous=False)))

    def destroy(self) -> None:
        """Release the service: unsubscribe, finish calls under way, close."""
        self.runtime.run(self._destroy())

    async def destroy_async(self) -> None:
        await self.runtime.run_async(self._destroy())

    async def _get(self, *, asynchronous: bool) -> Any:
        if self.destroyed:
            raise ServicesError(
                f"The invoker of ReferenceConfig({self.url or self.id}) has already destroyed!"
            )
        async with self._creating:
            if self._invoker is None:
                self.prepare()
                page = self.runtime.open_metrics(self.metrics, self.application_name)
                invoker = await self._create()
                if page is not None:
                    invoker = page.reference(
                        invoker, self.application_name, self.group or "", self.version or ""
                    )
                self._invoker = invoker
        if asynchronous not in self._proxies:
            factory = points.PROXIES.get(self._invoker.url.get("proxy", "python"))()
            self._proxies[asynchronous] = factory.get_proxy(
                self._invoker, self.runtime, asynchronous=asynchronous
            )
            key = build_key(self.model.name, self.group, self.version)
            self.runtime.consumer_models[key] = ConsumerModel(key, self.model, self._proxies[asynchronous])
        return self._proxies[asynchronous]

    async def _destroy(self) -> None:
        if self._invoker is None or self.destroyed:
            return
        self.destroyed = True
        invoker, self._invoker = self._invoker, None
        self._proxies.clear()
        await invoker.destroy()

    # -- how it is found ---------------------------------------------------------------------------------

    def _parameters(self) -> dict[str, str]:
        parameters = {"side": "consumer", **runtime_parameters()}
        if not self.is_generic:
            if self.version:
                parameters["revision"] = self.version
            parameters["methods"] = method_names(self.model)
        for config in (self.metrics, self.application, self.module, self.consumer, self):
            if config is not None:
                config.append_parameters(parameters)
        parameters["interface"] = self.model.name
        append_methods(parameters, self.methods, self.model)
        advertised = self.runtime.environment.system("DUBBO_IP_TO_REGISTRY")
        if advertised is not None and is_any(advertised):
            raise ConfigError(f"DUBBO_IP_TO_REGISTRY={advertised} is not an address others could use")
        parameters["register.ip"] = advertised or local_host()
        return parameters

    async def _create(self) -> Invoker:
        parameters = self._parameters()
        if self._stays_here(parameters):
            local = URL("injvm", LOCALHOST, 0, self.model.name, parameters).remove("register.ip")
            logger.info("Using injvm service %s", self.model.name)
            invoker = await self.runtime.refer(self.model, local)
        else:
            invoker = await self._remote(parameters)
        check = self.check if self.check is not None else (self.consumer.check if self.consumer else None)
        if check is not False and not invoker.is_available:
            await invoker.destroy()
            raise RpcException(
                f"Failed to check the status of the service {self.model.name}. No provider available for the "
                f"service {build_key(self.model.name, self.group, self.version)} from the url {invoker.url} to the "
                f"consumer {local_host()}: start a provider, or set check=false to wait for one",
                RpcCode.NO_INVOKER,
                reason=f"no provider of {invoker.url.service_key} is {self._where}",
            )
        logger.info("Refer dubbo service %s from url %s", self.model.name, invoker.url)
        report = load_metadata_report(self)
        if report is not None:
            consumer = URL("consumer", parameters.pop("register.ip"), 0, self.model.name, parameters)
            await (await self.runtime.report(report)).publish_consumer(consumer)
        return invoker

    @property
    def _where(self) -> str:
        """Where the service was looked for, as a message says it."""
        if self.url:
            return f"at {self.url}"
        return (
            f"registered at {', '.join(url.address for url in self.urls)}" if self.urls else "in this process"
        )

    def _stays_here(self, parameters: dict[str, str]) -> bool:
        if self.injvm is not None:
            return self.injvm
        if self.url:
            return False
        injvm = self.runtime.protocol("injvm")
        assert isinstance(injvm, InjvmProtocol)
        return injvm.is_wanted(URL("temp", "localhost", 0, "", parameters))

    async def _remote(self, parameters: dict[str, str]) -> Invoker:
        self.urls = self._direct_urls(parameters) if self.url else self._registry_urls(parameters)
        if not self.urls:
            raise ConfigError(
                f"No such any registry to reference {self.model.name} on the consumer {local_host()}: give "
                "registries=[RegistryConfig(address=…)], set dubbo.registry.address, or give url=… to call directly"
            )
        invokers: list[Invoker] = []
        try:
            for each in self.urls:
                invokers.append(await self.runtime.refer(self.model, each))
        except BaseException:
            for invoker in invokers:
                await invoker.destroy()
            raise
        if len(invokers) == 1 and self.urls[0].protocol == "registry":
            return invokers[0]
        through_registries = any(url.protocol == "registry" for url in self.urls)
        name = "available" if through_registries else parameters.get("cluster", "failover")
        url = URL("consumer", local_host(), 0, self.model.name, parameters)
        return points.CLUSTERS.get(name)(StaticDirectory(self.model, url, invokers))

    def _direct_urls(self, parameters: dict[str, str]) -> list[URL]:
        """Addresses given one by one, separated by `;`; a registry's among them is asked."""
        urls = []
        for text in re.split(r"\s*;+\s*", (self.url or "").strip()):
            url = URL.parse(text)
            if not url.protocol:
                raise ConfigError(f"reference {self.id}: url={text} has no protocol, write dubbo://{text}")
            url = url if url.path else url.replace(path=self.model.name)
            if url.protocol == "registry":
                urls.append(url.add({"refer": encode(to_query(parameters))}))
            else:
                own = {k: v for k, v in parameters.items() if k not in ("register.ip",)}
                own.setdefault("client.config", url.get("client.config"))  # This URL is the consumer's own.
                named = {k: v for k, v in own.items() if k in ("group", "version") and v}
                urls.append(merge_url(url.add_if_absent(named), own))
        return urls

    def _registry_urls(self, parameters: dict[str, str]) -> list[URL]:
        urls = []
        for registry in load_registries(self, provider=False, runtime_parameters=runtime_parameters()):
            monitor = load_monitor(self, registry, runtime_parameters())
            own = dict(parameters)
            if monitor is not None:
                own["monitor"] = encode(monitor.full)
            if registry.get("default"):
                own["registry.default"] = registry.get("default")
            urls.append(registry.add({"refer": encode(to_query(own))}))
        return urls

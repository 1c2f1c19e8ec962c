"""Fills in what a service or reference leaves open from its surroundings, nearest first, and checks all of it.

Near to far: the object itself, its provider or consumer, its module, its application, the application-wide settings,
then what only the environment names. Every mistake is found before anything is exported or referred to.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TypeVar

from headrace.services.addresses import parse_address, parse_addresses
from headrace.services.config.base import Config
from headrace.services.config.environment import Environment
from headrace.services.config.settings import (
    ApplicationConfig,
    InterfaceSettings,
    MetadataReportConfig,
    MetricsConfig,
    ModuleConfig,
    MonitorConfig,
    ProtocolConfig,
    RegistryConfig,
    copy_unset,
)
from headrace.services.net import is_any, local_host
from headrace.services.runtime import Runtime
from headrace.services.url import ANYHOST, LOCALHOST, URL, to_query

logger = logging.getLogger("headrace.services")
D = TypeVar("D", ProtocolConfig, RegistryConfig)

REGISTRY_SERVICE = "org.apache.dubbo.registry.RegistryService"
MONITOR_SERVICE = "org.apache.dubbo.monitor.MonitorService"


def complete(config: InterfaceSettings, defaults: InterfaceSettings | None, runtime: Runtime) -> None:
    """Give `config` its application, module, registries, monitor, report and metrics, each refreshed from outside."""
    shared = ("application", "module", "registries", "monitor", "metadata_report", "metrics")
    copy_unset(config, defaults, shared)
    config.application = config.application or runtime.application or ApplicationConfig()
    config.module = config.module or runtime.module
    for far in (config.module, config.application):
        copy_unset(config, far, ("registries", "monitor"))
    copy_unset(config, runtime, ("monitor", "metadata_report", "metrics"))
    environment = runtime.environment
    if not config.registries:
        config.registries = _defaults(runtime.registries or _registries_from(runtime), environment)
    if config.module is None and environment.get("dubbo.module.name"):
        config.module = ModuleConfig()
    if config.monitor is None:
        config.monitor = MonitorConfig()
    if config.metadata_report is None:
        config.metadata_report = MetadataReportConfig()
    if config.metrics is None:
        config.metrics = MetricsConfig()
    for part in surroundings(config):
        part.refresh(environment)


def _defaults(configs: list[D], environment: Environment) -> list[D]:
    """Those used where none is named; one with `default=false` must be named."""
    for config in configs:
        config.refresh(environment)
    return [config for config in configs if config.default is not False]


def _registries_from(runtime: Runtime) -> list[RegistryConfig]:
    """Registries that only properties, the environment or a file name."""
    ids = runtime.environment.ids("dubbo.registries.")
    if ids:
        return [RegistryConfig(id=each) for each in ids]
    addresses = runtime.environment.get("dubbo.registry.address")
    if not addresses:
        return []
    return [RegistryConfig(address=part) for part in re.split(r"\s*\|+\s*", addresses) if part]


def complete_protocols(protocols: list[ProtocolConfig], runtime: Runtime) -> list[ProtocolConfig]:
    """The given protocols, else the application's, else those the environment names, else `dubbo`."""
    named = [ProtocolConfig(id=each) for each in runtime.environment.ids("dubbo.protocols.")]
    chosen = protocols or _defaults(runtime.protocols or named, runtime.environment) or [ProtocolConfig()]
    for protocol in chosen:
        protocol.refresh(runtime.environment)
        protocol.name = protocol.name or "dubbo"
    return chosen


def surroundings(config: InterfaceSettings) -> list[Config]:
    """What a service or reference belongs to and is found through."""
    parts: list[Config | None] = [config.application, config.module, config.monitor, config.metadata_report]
    return [part for part in [*parts, config.metrics, *config.registries] if part is not None]


def load_registries(
    config: InterfaceSettings, *, provider: bool, runtime_parameters: dict[str, str]
) -> list[URL]:
    """The registries as `registry://…?registry=<protocol>`, without those switched off for this side."""
    urls = []
    for registry in config.registries:
        if registry.is_direct:
            continue
        parameters: dict[str, str] = {}
        if config.application is not None:
            config.application.append_parameters(parameters)
        registry.append_parameters(parameters)
        parameters |= {"path": REGISTRY_SERVICE, **runtime_parameters}
        parameters.setdefault("protocol", "dubbo")
        for url in parse_addresses(registry.address or ANYHOST, parameters):
            wanted = url.get_bool("register", True) if provider else url.get_bool("subscribe", True)
            if wanted:
                urls.append(url.add({"registry": url.protocol}).replace(protocol="registry"))
    return urls


def load_monitor(config: InterfaceSettings, registry: URL, runtime_parameters: dict[str, str]) -> URL | None:
    """The monitor's URL: its own address, or the registry's when it is found through that."""
    monitor = config.monitor
    if monitor is None:
        return None
    parameters = {"interface": MONITOR_SERVICE, **runtime_parameters, "register.ip": local_host()}
    monitor.append_parameters(parameters)
    if config.application is not None:
        config.application.append_parameters(parameters)
    if monitor.address and monitor.address.lower() not in ("false", "0", "null", "n/a"):
        _say_no_statistics(monitor.address)
        for key in ("protocol", "username", "password"):
            value = getattr(monitor, key)
            if value:
                parameters[key] = value
        parameters.setdefault("protocol", "dubbo")
        return parse_address(monitor.address, parameters)
    if monitor.protocol == "registry":
        through = registry.replace(protocol="dubbo").add({"protocol": "registry"})
        return through.add_encoded("refer", to_query(parameters))
    return None


@cache
def _say_no_statistics(address: str) -> None:
    logger.warning("monitor: no statistics are sent to %s, its address only travels in URLs", address)


def load_metadata_report(config: InterfaceSettings) -> URL | None:
    report = config.metadata_report
    if report is None or not report.address:
        return None
    parameters: dict[str, str] = {}
    report.append_parameters(parameters)
    url = parse_address(report.address, parameters)
    return url.replace(host=LOCALHOST) if is_any(url.host) else url

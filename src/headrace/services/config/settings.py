"""The settings objects: application, module, registry, protocol, monitor, metadata report, method, argument,
and what providers, consumers, services and references share.

Names, meanings and defaults are Dubbo 2.7.3's; a name that is a Python word carries a trailing underscore
(`async_`, `return_`, `export_`). Near settings win: method over service over protocol over provider over
module over application.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from headrace.services import points
from headrace.services.config.base import (
    Config,
    at_least,
    is_extension,
    is_key,
    is_method_name,
    is_milliseconds,
    is_name,
    is_names,
    is_path,
    is_port,
    is_short,
    is_symbolic,
    not_true,
    one_of,
    setting,
)

NOT_AVAILABLE = "N/A"


@dataclass(kw_only=True)
class MonitorConfig(Config):
    """Where statistics go; `protocol="registry"` finds the monitor through the registry."""

    TAG: ClassVar[str] = "monitor"

    protocol: str | None = setting(excluded=True, check=is_name)
    address: str | None = setting(excluded=True)
    username: str | None = setting(excluded=True)
    password: str | None = setting(excluded=True)
    group: str | None = setting()
    version: str | None = setting()
    interval: str | None = setting()
    default: bool | None = setting()


@dataclass(kw_only=True)
class MetricsConfig(Config):
    """Where an application's services offer their metrics to Prometheus; port 0 takes a free one."""

    TAG: ClassVar[str] = "metrics"

    host: str | None = setting(excluded=True)
    port: int | None = setting(key="metrics.port", check=at_least(0, 65535))
    protocol: str | None = setting(key="metrics.protocol", check=one_of("prometheus", "dubbo"))


@dataclass(kw_only=True)
class MetadataReportConfig(Config):
    """Where descriptions of services are published."""

    TAG: ClassVar[str] = "metadata-report"

    address: str | None = setting(excluded=True)
    username: str | None = setting()
    password: str | None = setting()
    timeout: int | None = setting(check=is_milliseconds)
    group: str | None = setting()
    retry_times: int | None = setting(key="retry-times", check=at_least(0))
    retry_period: int | None = setting(key="retry-period", check=is_milliseconds)


@dataclass(kw_only=True)
class RegistryConfig(Config):
    """One registry. `address` is `zookeeper://host:port`, `embedded://…` or `N/A`; empty means any host."""

    TAG: ClassVar[str] = "registry"
    PLURAL: ClassVar[str] = "registries"

    address: str | None = setting(excluded=True)
    username: str | None = setting(check=is_name)
    password: str | None = setting(check=is_short)
    port: int | None = setting(check=is_port)
    protocol: str | None = setting(check=is_name)
    transporter: str | None = setting(check=is_name)
    server: str | None = setting(check=is_name)
    client: str | None = setting(check=is_name)
    cluster: str | None = setting()
    group: str | None = setting()
    version: str | None = setting()
    timeout: int | None = setting(check=is_milliseconds)
    session: int | None = setting(check=is_milliseconds)
    file: str | None = setting(check=is_short)
    check: bool | None = setting()
    dynamic: bool | None = setting()
    register: bool | None = setting()
    subscribe: bool | None = setting()
    default: bool | None = setting()
    simplified: bool | None = setting()
    extra_keys: str | None = setting(key="extra-keys")

    @property
    def is_direct(self) -> bool:
        """`N/A`: no registry at all, calls go straight to the provider."""
        return (self.address or "").upper() == NOT_AVAILABLE


@dataclass(kw_only=True)
class ApplicationConfig(Config):
    """The application a service or a reference belongs to."""

    TAG: ClassVar[str] = "application"

    name: str | None = setting(key="application", check=is_name, required=True)
    version: str | None = setting(key="application.version")
    owner: str | None = setting(check=is_names)
    organization: str | None = setting(check=is_name)
    architecture: str | None = setting(check=is_name)
    environment: str | None = setting(check=one_of("develop", "test", "product"))
    default: bool | None = setting()
    shutwait: int | None = setting(check=is_milliseconds)
    registries: list[RegistryConfig] = field(default_factory=list)
    monitor: MonitorConfig | None = None


@dataclass(kw_only=True)
class ModuleConfig(Config):
    """A part of an application."""

    TAG: ClassVar[str] = "module"

    name: str | None = setting(key="module", check=is_name, required=True)
    version: str | None = setting(key="module.version")
    owner: str | None = setting(check=is_name)
    organization: str | None = setting(check=is_name)
    default: bool | None = setting()
    registries: list[RegistryConfig] = field(default_factory=list)
    monitor: MonitorConfig | None = None


@dataclass(kw_only=True)
class ProtocolConfig(Config):
    """One way to reach a service: which protocol, on which host and port, with which limits."""

    TAG: ClassVar[str] = "protocol"
    PLURAL: ClassVar[str] = "protocols"

    name: str | None = setting(excluded=True, check=is_extension(points.PROTOCOLS))
    host: str | None = setting(excluded=True, check=is_name)
    port: int | None = setting(excluded=True, check=is_port)
    contextpath: str | None = setting(excluded=True, check=is_path)
    threads: int | None = setting(check=at_least(1))
    queues: int | None = setting(check=at_least(0))
    accepts: int | None = setting(check=at_least(0))
    serialization: str | None = setting(check=one_of("hessian2"))
    payload: int | None = setting(check=at_least(0))
    heartbeat: int | None = setting(check=is_milliseconds)
    accesslog: str | bool | None = setting()
    dispatcher: str | None = setting(check=one_of("all", "direct", "message", "execution", "connection"))
    register: bool | None = setting()
    keep_alive: bool | None = setting(key="keepalive")
    default: bool | None = setting()


@dataclass(kw_only=True)
class ArgumentConfig(Config):
    """One argument of a method, by `index`, by `type`, or by both, which must then agree."""

    TAG: ClassVar[str] = "argument"

    index: int = setting(-1, excluded=True)
    type: str | None = setting(excluded=True)
    callback: bool | None = setting(
        check=not_true("let the provider call a service of the consumer's own instead")
    )


@dataclass(kw_only=True)
class CallSettings(Config):
    """What can be said about a call, for one method or for all of them."""

    timeout: int | None = setting(check=is_milliseconds)
    retries: int | None = setting(check=at_least(-1))
    actives: int | None = setting(check=at_least(0))
    loadbalance: str | None = setting(check=is_extension(points.LOAD_BALANCERS))
    async_: bool | None = setting()
    sent: bool | None = setting()
    forks: int | None = setting(check=at_least(1))


@dataclass(kw_only=True)
class MethodConfig(CallSettings):
    """The settings of one method; `retry=False` is the same as `retries=0`."""

    TAG: ClassVar[str] = "method"

    name: str | None = setting(excluded=True, check=is_method_name, required=True)
    retry: bool | None = setting()
    executes: int | None = setting(check=at_least(0))
    deprecated: bool | None = setting()
    sticky: bool | None = setting()
    return_: bool | None = setting()
    arguments: list[ArgumentConfig] = field(default_factory=list)
    service: str = ""  # the interface, which is part of the property's name

    def prefixes(self) -> list[str]:
        return [f"dubbo.{self.service}.{self.name}.", f"dubbo.service.{self.service}.{self.name}."]

    @property
    def label(self) -> str:
        return f"method {self.name}" if self.name else "method"


@dataclass(kw_only=True)
class InterfaceSettings(CallSettings):
    """What both sides of a service can say about it."""

    proxy: str | None = setting(check=is_extension(points.PROXIES))
    cluster: str | None = setting(check=is_extension(points.CLUSTERS))
    owner: str | None = setting(check=is_names)
    connections: int | None = setting(check=at_least(0))
    layer: str | None = setting(check=is_symbolic)
    scope: str | None = setting(check=one_of("none", "local", "remote"))
    tag: str | None = setting(key="dubbo.tag")
    group: str | None = setting(check=is_key)
    version: str | None = setting(check=is_key)
    application: ApplicationConfig | None = None
    module: ModuleConfig | None = None
    registries: list[RegistryConfig] = field(default_factory=list)
    monitor: MonitorConfig | None = None
    metadata_report: MetadataReportConfig | None = None
    metrics: MetricsConfig | None = None

    @property
    def application_name(self) -> str:
        return (self.application.name if self.application else None) or ""


@dataclass(kw_only=True)
class ProviderSettings(InterfaceSettings):
    """What a provider says, for all its services or for one."""

    deprecated: bool | None = setting()
    delay: int | None = setting()
    export_: bool | None = setting()
    weight: int | None = setting(check=at_least(0))
    document: str | None = setting(escaped=True)
    dynamic: bool | None = setting()
    token: str | bool | None = setting(check=is_name)
    accesslog: str | bool | None = setting()
    executes: int | None = setting(check=at_least(0))
    register: bool | None = setting()
    warmup: int | None = setting(check=is_milliseconds)
    serialization: str | None = setting(check=one_of("hessian2"))
    dispatcher: str | None = setting(check=one_of("all", "direct", "message", "execution", "connection"))
    filter: str | None = setting(
        key="service.filter", append=True, check=is_extension(points.FILTERS, several=True)
    )
    protocols: list[ProtocolConfig] = field(default_factory=list)


@dataclass(kw_only=True)
class ProviderConfig(ProviderSettings):
    """The defaults of every service this application exports."""

    TAG: ClassVar[str] = "provider"

    host: str | None = setting(excluded=True, check=is_name)
    port: int | None = setting(excluded=True, check=is_port)
    contextpath: str | None = setting(excluded=True, check=is_path)
    threads: int | None = setting(check=at_least(1))
    queues: int | None = setting(check=at_least(0))
    accepts: int | None = setting(check=at_least(0))
    payload: int | None = setting(check=at_least(0))
    wait: int | None = setting(check=is_milliseconds)
    default: bool | None = setting(excluded=True)


@dataclass(kw_only=True)
class ConsumerSettings(InterfaceSettings):
    """What a consumer says, for all its references or for one."""

    check: bool | None = setting()
    init: bool | None = setting()
    generic: str | bool | None = setting(check=one_of("true", "false"))
    injvm: bool | None = setting()
    lazy: bool | None = setting()
    reconnect: bool | None = setting()
    sticky: bool | None = setting()
    filter: str | None = setting(
        key="reference.filter", append=True, check=is_extension(points.FILTERS, several=True)
    )


@dataclass(kw_only=True)
class ConsumerConfig(ConsumerSettings):
    """The defaults of every service this application refers to."""

    TAG: ClassVar[str] = "consumer"

    shareconnections: int | None = setting(check=at_least(1))
    default: bool | None = setting()


def copy_unset(near: Any, far: Any, names: tuple[str, ...]) -> None:
    """Fill what `near` leaves empty from `far`."""
    for name in names:
        if far is not None and not getattr(near, name):
            setattr(near, name, getattr(far, name))

"""What each setting does: which module reads it, that it only informs, or why it has no effect here.

One entry for each setting, by the class that declares it. A test compares the table with the settings and with what
the modules named here really read, so a setting without effect cannot be added unnoticed. Setting one that has no
effect logs a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Read:
    """A module below `headrace.services` acts on it."""

    by: str


@dataclass(frozen=True, slots=True)
class Shown:
    """It travels in the URL for consoles and Java applications; nothing here or in Dubbo 2.7.3 depends on it."""


@dataclass(frozen=True, slots=True)
class Inert:
    """It is known but has no effect; setting it logs the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Its check refuses the value that would need what is not here."""


Effect = Read | Shown | Inert | Refused

SHOWN: Final = Shown()
_ONLY_ONE: Final = Inert("an application has only one of these")
_NO_STATISTICS: Final = Inert("no statistics are sent to a monitor")
_OWN_CLIENT: Final = Inert("each kind of registry has its own client")

EFFECTS: Final[Mapping[str, Mapping[str, Effect]]] = {
    "MonitorConfig": {
        "protocol": Read("config.complete"),
        "address": Read("config.complete"),
        "username": Read("config.complete"),
        "password": Read("config.complete"),
        "group": _NO_STATISTICS,
        "version": _NO_STATISTICS,
        "interval": _NO_STATISTICS,
        "default": _ONLY_ONE,
    },
    "MetricsConfig": {"host": Read("runtime"), "port": Read("runtime"), "protocol": Read("runtime")},
    "MetadataReportConfig": {
        "address": Read("config.complete"),
        "username": Read("addresses"),
        "password": Read("addresses"),
        "timeout": Read("registry.zk"),
        "group": Read("metadata"),
        "retry_times": Read("metadata"),
        "retry_period": Read("metadata"),
    },
    "RegistryConfig": {
        "address": Read("config.complete"),
        "username": Read("addresses"),
        "password": Read("addresses"),
        "port": Read("addresses"),
        "protocol": Read("addresses"),
        "transporter": _OWN_CLIENT,
        "server": _OWN_CLIENT,
        "client": _OWN_CLIENT,
        "cluster": Inert("of several registries the default one is asked first, then the others"),
        "group": Read("registry.zookeeper"),
        "version": _OWN_CLIENT,
        "timeout": Read("registry.zk"),
        "session": Read("registry.zk"),
        "file": Inert("a consumer keeps the providers it knows in memory while the registry is away"),
        "check": Read("registry.zk"),
        "dynamic": Read("service"),
        "register": Read("config.complete"),
        "subscribe": Read("config.complete"),
        "default": Read("config.complete"),
        "simplified": Read("protocols.registry"),
        "extra_keys": Read("protocols.registry"),
    },
    "ApplicationConfig": {
        "name": Read("cluster.configurator"),
        "version": SHOWN,
        "owner": SHOWN,
        "organization": SHOWN,
        "architecture": SHOWN,
        "environment": SHOWN,
        "default": _ONLY_ONE,
        "shutwait": Read("service"),
    },
    "ModuleConfig": {
        "name": SHOWN,
        "version": SHOWN,
        "owner": SHOWN,
        "organization": SHOWN,
        "default": _ONLY_ONE,
    },
    "ProtocolConfig": {
        "name": Read("export_url"),
        "host": Read("export_url"),
        "port": Read("export_url"),
        "contextpath": Read("service"),
        "threads": Read("runtime"),
        "queues": Read("runtime"),
        "accepts": Read("protocols.dubbo.port"),
        "serialization": SHOWN,
        "payload": Read("protocols.dubbo.port"),
        "heartbeat": Read("protocols.dubbo.connection"),
        "accesslog": Read("filters.accesslog"),
        "dispatcher": Read("proxy"),
        "register": Read("protocols.registry"),
        "keep_alive": Read("protocols.rest.server"),
        "default": Read("config.complete"),
    },
    "ArgumentConfig": {
        "index": Read("export_url"),
        "type": Read("export_url"),
        "callback": Refused(),
    },
    "CallSettings": {
        "timeout": Read("protocols.dubbo.protocol"),
        "retries": Read("cluster.strategies"),
        "actives": Read("filters.limits"),
        "loadbalance": Read("cluster.strategies"),
        "async_": Read("proxy"),
        "sent": Read("protocols.dubbo.protocol"),
        "forks": Read("cluster.strategies"),
    },
    "MethodConfig": {
        "name": Read("export_url"),
        "retry": Read("export_url"),
        "executes": Read("filters.limits"),
        "deprecated": Read("filters.deprecated"),
        "sticky": Read("cluster.strategies"),
        "return_": Read("proxy"),
    },
    "InterfaceSettings": {
        "proxy": Read("reference"),
        "cluster": Read("cluster.directory"),
        "owner": SHOWN,
        "connections": Read("protocols.dubbo.protocol"),
        "layer": SHOWN,
        "scope": Read("service"),
        "tag": Read("cluster.tags"),
        "group": Read("url"),
        "version": Read("url"),
    },
    "ProviderSettings": {
        "deprecated": Read("filters.deprecated"),
        "delay": Read("service"),
        "export_": Read("service"),
        "weight": Read("cluster.loadbalance"),
        "document": SHOWN,
        "dynamic": Read("registry.zookeeper"),
        "token": Read("export_url"),
        "accesslog": Read("filters.accesslog"),
        "executes": Read("filters.limits"),
        "register": Read("protocols.registry"),
        "warmup": Read("cluster.loadbalance"),
        "serialization": SHOWN,
        "dispatcher": Read("proxy"),
        "filter": Read("filters.chain"),
    },
    "ProviderConfig": {
        "host": Read("export_url"),
        "port": Read("export_url"),
        "contextpath": Read("service"),
        "threads": Read("runtime"),
        "queues": Read("runtime"),
        "accepts": Read("protocols.dubbo.port"),
        "payload": Read("protocols.dubbo.port"),
        "wait": Read("service"),
        "default": _ONLY_ONE,
    },
    "ConsumerSettings": {
        "check": Read("reference"),
        "init": Read("reference"),
        "generic": Read("reference"),
        "injvm": Read("reference"),
        "lazy": Read("protocols.dubbo.protocol"),
        "reconnect": Read("protocols.dubbo.client"),
        "sticky": Read("cluster.strategies"),
        "filter": Read("filters.chain"),
    },
    "ConsumerConfig": {"shareconnections": Read("protocols.dubbo.protocol"), "default": _ONLY_ONE},
    "ServiceConfig": {"path": Read("service"), "interface_name": Read("service")},
    "ReferenceConfig": {
        "interface_name": Read("reference"),
        "url": Read("reference"),
        "protocol": Read("cluster.directory"),
    },
}


def effect_of(config: type, name: str) -> Effect:
    """The effect of a setting, found at the class that declares it."""
    for cls in config.__mro__:
        if name in EFFECTS.get(cls.__name__, ()) and name in cls.__annotations__:
            return EFFECTS[cls.__name__][name]
    return Inert("nothing reads it")

"""The kinds of extension and the names that are built in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.services.extension import ExtensionPoint

if TYPE_CHECKING:
    from headrace.services.cluster.configurator import ConfiguratorFactory
    from headrace.services.cluster.directory_base import ClusterFactory
    from headrace.services.cluster.loadbalance import LoadBalanceFactory
    from headrace.services.filters.base import Filter
    from headrace.services.metadata import MetadataReportFactory
    from headrace.services.protocols.base import ProtocolFactory
    from headrace.services.proxy import ProxyFactory
    from headrace.services.registry.base import RegistryFactory

_HERE = "headrace.services"

PROTOCOLS: ExtensionPoint[ProtocolFactory] = ExtensionPoint(
    "protocol",
    {
        "dubbo": f"{_HERE}.protocols.dubbo.protocol:DubboProtocol",
        "injvm": f"{_HERE}.protocols.injvm:InjvmProtocol",
        "rest": f"{_HERE}.protocols.rest.protocol:RestProtocol",
        "headrace": f"{_HERE}.protocols.topics.protocol:TopicsProtocol",
        "registry": f"{_HERE}.protocols.registry:RegistryProtocol",
    },
)

REGISTRIES: ExtensionPoint[RegistryFactory] = ExtensionPoint(
    "registry",
    {
        "zookeeper": f"{_HERE}.registry.zookeeper:ZooKeeperRegistry",
        "embedded": f"{_HERE}.registry.embedded:EmbeddedRegistry",
    },
)

CONFIGURATORS: ExtensionPoint[ConfiguratorFactory] = ExtensionPoint(
    "configurator",
    {
        "override": f"{_HERE}.cluster.configurator:OverrideConfigurator",
        "absent": f"{_HERE}.cluster.configurator:AbsentConfigurator",
    },
)

PROXIES: ExtensionPoint[type[ProxyFactory]] = ExtensionPoint(
    "proxy", {"python": f"{_HERE}.proxy:PythonProxyFactory"}
)

FILTERS: ExtensionPoint[type[Filter]] = ExtensionPoint(
    "filter",
    {
        "echo": f"{_HERE}.filters.echo:EchoFilter",
        "generic": f"{_HERE}.filters.generic:GenericFilter",
        "context": f"{_HERE}.filters.context:ContextFilter",
        "token": f"{_HERE}.filters.token:TokenFilter",
        "timeout": f"{_HERE}.filters.timeout:TimeoutFilter",
        "exception": f"{_HERE}.filters.exception:ExceptionFilter",
        "accesslog": f"{_HERE}.filters.accesslog:AccessLogFilter",
        "executelimit": f"{_HERE}.filters.limits:ExecuteLimitFilter",
        "tps": f"{_HERE}.filters.limits:TpsLimitFilter",
        "activelimit": f"{_HERE}.filters.limits:ActiveLimitFilter",
        "genericimpl": f"{_HERE}.filters.generic:GenericImplFilter",
        "deprecated": f"{_HERE}.filters.deprecated:DeprecatedFilter",
    },
)

LOAD_BALANCERS: ExtensionPoint[LoadBalanceFactory] = ExtensionPoint(
    "load balancer",
    {
        "random": f"{_HERE}.cluster.loadbalance:RandomLoadBalance",
        "roundrobin": f"{_HERE}.cluster.loadbalance:RoundRobinLoadBalance",
        "leastactive": f"{_HERE}.cluster.loadbalance:LeastActiveLoadBalance",
        "consistenthash": f"{_HERE}.cluster.loadbalance:ConsistentHashLoadBalance",
    },
)

CLUSTERS: ExtensionPoint[ClusterFactory] = ExtensionPoint(
    "cluster",
    {
        "failover": f"{_HERE}.cluster.strategies:FailoverCluster",
        "failfast": f"{_HERE}.cluster.strategies:FailfastCluster",
        "failsafe": f"{_HERE}.cluster.strategies:FailsafeCluster",
        "failback": f"{_HERE}.cluster.failback:FailbackCluster",
        "forking": f"{_HERE}.cluster.strategies:ForkingCluster",
        "available": f"{_HERE}.cluster.strategies:AvailableCluster",
    },
)

METADATA_REPORTS: ExtensionPoint[MetadataReportFactory] = ExtensionPoint(
    "metadata report", {"zookeeper": f"{_HERE}.metadata:ZooKeeperMetadataReport"}
)

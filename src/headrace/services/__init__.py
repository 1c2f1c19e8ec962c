"""Services after Dubbo 2.7.3: export, discovery and calls, in Python.

    @service(token=True)
    class Greeter:
        def say_hello(self, name: str) -> str:
            return f"Hello {name}"

    with Bootstrap("greetings", registry="zookeeper://127.0.0.1:2181") as app:
        ...

A Java consumer of Dubbo 2.7.3 finds and calls such a service over dubbo://, and the other way round.
"""

from headrace.services.bootstrap import Bootstrap, service
from headrace.services.config.environment import Environment
from headrace.services.config.settings import (
    ApplicationConfig,
    ArgumentConfig,
    ConsumerConfig,
    MetadataReportConfig,
    MethodConfig,
    MetricsConfig,
    ModuleConfig,
    MonitorConfig,
    ProtocolConfig,
    ProviderConfig,
    RegistryConfig,
)
from headrace.services.context import attach, current, reply_attachments
from headrace.services.errors import ConfigError, RegistryError, RpcCode, RpcException, ServicesError
from headrace.services.generic import GenericService
from headrace.services.hessian2 import JavaException, JavaObject, JavaType, java_class
from headrace.services.interface import interface, method
from headrace.services.reference import ReferenceConfig
from headrace.services.runtime import Runtime, default_runtime
from headrace.services.service import ServiceConfig
from headrace.services.url import URL

__all__ = [
    "URL",
    "ApplicationConfig",
    "ArgumentConfig",
    "Bootstrap",
    "ConfigError",
    "ConsumerConfig",
    "Environment",
    "GenericService",
    "JavaException",
    "JavaObject",
    "JavaType",
    "MetadataReportConfig",
    "MethodConfig",
    "MetricsConfig",
    "ModuleConfig",
    "MonitorConfig",
    "ProtocolConfig",
    "ProviderConfig",
    "ReferenceConfig",
    "RegistryConfig",
    "RegistryError",
    "RpcCode",
    "RpcException",
    "Runtime",
    "ServiceConfig",
    "ServicesError",
    "attach",
    "current",
    "default_runtime",
    "interface",
    "java_class",
    "method",
    "reply_attachments",
    "service",
]

"""The URL a service is exported under: every parameter, the host and the port, in the documented order.

Parameters: side and runtime facts, then metrics, application, module, provider, protocol, service and methods; the
later wins. Host: `DUBBO_IP_TO_BIND` → protocol → provider → this machine's address. Port: `DUBBO_PORT_TO_BIND` →
protocol → provider → the protocol's default → a free one. `DUBBO_IP_TO_REGISTRY` and `DUBBO_PORT_TO_REGISTRY`
replace them in what is registered.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from headrace.services import points
from headrace.services.config.environment import Environment
from headrace.services.config.settings import (
    ApplicationConfig,
    ArgumentConfig,
    MethodConfig,
    MetricsConfig,
    ModuleConfig,
    ProtocolConfig,
    ProviderConfig,
)
from headrace.services.errors import ConfigError
from headrace.services.interface import InterfaceModel, MethodModel
from headrace.services.net import address_towards, is_any, is_invalid_local_host, is_valid_port, local_host
from headrace.services.release import runtime_parameters
from headrace.services.runtime import Runtime
from headrace.services.url import ANY, URL, is_true, to_text

logger = logging.getLogger("headrace.services")

_OFF = ("", "false", "0", "null", "n/a")


class OfferedService(Protocol):
    """What the URL of a service is made from; `ServiceConfig` has it."""

    @property
    def metrics(self) -> MetricsConfig | None: ...

    @property
    def application(self) -> ApplicationConfig | None: ...

    @property
    def module(self) -> ModuleConfig | None: ...

    @property
    def provider(self) -> ProviderConfig | None: ...

    @property
    def methods(self) -> Sequence[MethodConfig]: ...

    @property
    def model(self) -> InterfaceModel: ...

    @property
    def is_generic(self) -> bool: ...

    @property
    def runtime(self) -> Runtime: ...

    def full_path(self, protocol: ProtocolConfig) -> str: ...

    def append_parameters(self, parameters: dict[str, str]) -> None: ...


def provider_url(service: OfferedService, protocol: ProtocolConfig, registries: Sequence[URL]) -> URL:
    """The URL of one service over one protocol."""
    parameters = {"side": "provider", **runtime_parameters()}
    for config in (service.metrics, service.application, service.module, service.provider, protocol, service):
        if config is not None:
            config.append_parameters(parameters)
    parameters.setdefault("deprecated", "false")
    parameters["interface"] = service.model.name
    parameters.pop("export", None)
    append_methods(parameters, service.methods, service.model)
    if service.is_generic:
        parameters |= {"generic": "true", "methods": ANY}
    else:
        parameters["generic"] = "false"
        if parameters.get("version"):
            parameters["revision"] = parameters["version"]
        parameters["methods"] = method_names(service.model)
    token = parameters.pop("token", "")
    if token.lower() not in _OFF:
        generated = token.lower() in ("true", "default")
        parameters["token"] = str(uuid.uuid4()) if generated else token
    name = protocol.name or "dubbo"
    host = _find_host(service, protocol, registries, parameters)
    port = _find_port(service, protocol, name, parameters)
    url = URL(name, host, port, service.full_path(protocol), parameters)
    if points.CONFIGURATORS.has(name):
        url = points.CONFIGURATORS.get(name)(url).configure(url)
    return url


def method_names(model: InterfaceModel) -> str:
    if not model.methods:
        logger.warning("No method found in service interface %s", model.name)
        return ANY
    return ",".join(sorted(model.methods))


def append_methods(
    parameters: dict[str, str], methods: Sequence[MethodConfig], model: InterfaceModel
) -> None:
    """Each method's own settings as `<method>.<key>`, and its arguments' as `<method>.<index>.<key>`."""
    for config in methods:
        name = config.name or ""
        config.append_parameters(parameters, name)
        parameters.pop(f"{name}.retry", None)
        if config.retry is False:
            parameters[f"{name}.retries"] = "0"
        found = model.find(name)
        for argument in config.arguments:
            for index in argument_indexes(argument, found):
                argument.append_parameters(parameters, f"{name}.{index}")


def argument_indexes(argument: ArgumentConfig, method: MethodModel | None) -> list[int]:
    """Which arguments of a method a setting is for."""
    if argument.index >= 0:
        return [argument.index]
    if method is None:
        return []
    return [index for index, p in enumerate(method.parameters) if argument.type in type_names(p)]


def type_names(parameter: Any) -> tuple[str, str]:
    """The names a parameter's type goes by: Java's and Python's."""
    return parameter.java_type, getattr(parameter.annotation, "__name__", "")


def argument_mistakes(method: MethodConfig, model: InterfaceModel) -> list[str]:
    """What is wrong with a method's argument settings."""
    found = model.find(method.name or "")
    if found is None:
        return []
    mistakes = []
    for argument in method.arguments:
        place = f"argument of {model.name}.{method.name}"
        if argument.index < 0 and not argument.type:
            mistakes.append(f"{place}: index and type are both missing, set one of them")
        elif argument.index >= len(found.parameters):
            mistakes.append(
                f"{place}: index={argument.index} is out of range, it has {len(found.parameters)}"
            )
        elif (
            argument.index >= 0
            and argument.type
            and argument.type not in type_names(found.parameters[argument.index])
        ):
            mistakes.append(
                f"{place}: index={argument.index} and type={argument.type} do not match, "
                f"that argument is a {found.parameters[argument.index].java_type}"
            )
    return mistakes


# -- host and port -------------------------------------------------------------------------------------------


def _from_system(environment: Environment, protocol: str, key: str) -> str | None:
    return environment.system(f"{protocol.upper()}_{key}") or environment.system(key)


def _find_host(
    service: OfferedService,
    protocol: ProtocolConfig,
    registries: Sequence[URL],
    parameters: dict[str, str],
) -> str:
    environment, name = service.runtime.environment, protocol.name or "dubbo"
    bind = _from_system(environment, name, "DUBBO_IP_TO_BIND")
    if bind is not None and is_any(bind):
        raise ConfigError(f"DUBBO_IP_TO_BIND={bind} is not an address of this machine")
    anyhost = False
    if bind is None:
        bind = protocol.host or (service.provider.host if service.provider else None)
        if is_any(bind):
            anyhost = True
            bind = local_host()
            if is_invalid_local_host(bind):
                reachable = (address_towards(r.host, r.port) for r in registries if r.host and r.port)
                bind = next((address for address in reachable if address), bind)
    assert bind is not None
    parameters["bind.ip"] = bind
    parameters["anyhost"] = to_text(anyhost)
    advertised = _from_system(environment, name, "DUBBO_IP_TO_REGISTRY")
    if advertised is not None and is_any(advertised):
        raise ConfigError(f"DUBBO_IP_TO_REGISTRY={advertised} is not an address consumers could use")
    return advertised or bind


def _find_port(
    service: OfferedService, protocol: ProtocolConfig, name: str, parameters: dict[str, str]
) -> int:
    runtime = service.runtime
    port = _system_port(runtime, name, "DUBBO_PORT_TO_BIND")
    if port is None:
        provider_port = service.provider.port if service.provider else None
        default = runtime.protocol(name).default_port
        port = protocol.port or provider_port or default
        if port < 0:
            host = "" if is_true(parameters["anyhost"]) else parameters["bind.ip"]
            port = runtime.random_port(name, host, default)
    parameters["bind.port"] = str(port)
    return _system_port(runtime, name, "DUBBO_PORT_TO_REGISTRY") or port


def _system_port(runtime: Runtime, name: str, key: str) -> int | None:
    text = _from_system(runtime.environment, name, key)
    if text is None:
        return None
    if not text.isdecimal() or not is_valid_port(int(text)):
        raise ConfigError(f"{key}={text} is not a port from 1 to 65535")
    return int(text)

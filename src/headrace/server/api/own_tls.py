"""Settings of TLS that a client wants this broker to have: tried here, where the files are, before the controller decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from headrace.server.api.config_permissions import RequestedResource
from headrace.server.api.context import Context
from headrace.server.cluster.image import ConfigResource, ResourceType
from headrace.server.config.definition import ConfigError
from headrace.wire.errors import ErrorCode, KafkaError

A = TypeVar("A", bound=RequestedResource)

Values = Mapping[str, str | None]


async def without_unusable(
    context: Context, resources: list[A], after: Callable[[A, Mapping[str, str]], Values]
) -> tuple[list[A], list[tuple[A, KafkaError]]]:
    """The resources to go on with, and those whose keys or certificates could not be used. `after` gives the values a resource
    would have, from those it has."""
    good: list[A] = []
    bad: list[tuple[A, KafkaError]] = []
    for asked in resources:
        try:
            await _check(context, asked, after)
            good.append(asked)
        except ConfigError as error:
            bad.append((asked, KafkaError(ErrorCode.INVALID_CONFIG, str(error))))
        except KafkaError:
            good.append(asked)  # The controller says what is wrong with it.
    return good, bad


async def _check(context: Context, asked: A, after: Callable[[A, Mapping[str, str]], Values]) -> None:
    engines = context.engines
    own = str(engines.broker_id)
    if engines.tls is None or asked.resource_type != ResourceType.BROKER or asked.resource_name != own:
        return
    present = engines.cluster.image.configs.get(ConfigResource(ResourceType.BROKER, own), {})
    values = after(asked, present)
    if not any("ssl." in name and value != present.get(name) for name, value in values.items()):
        return
    dynamic = {name: value for name, value in {**present, **values}.items() if value is not None}
    config = engines.config.with_dynamic(engines.config.dynamic_default, dynamic)
    await asyncio.get_running_loop().run_in_executor(engines.disk, engines.tls.check, config)

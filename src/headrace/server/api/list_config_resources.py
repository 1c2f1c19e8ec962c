"""ListConfigResources: what has settings, or can have them.

- 0: client metrics subscriptions only
- 1: topics, brokers, their loggers, groups with settings of their own and client metrics subscriptions; all kinds when none is named
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.cluster.image import MetadataImage, ResourceType
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


@requires_on_cluster(Operation.DESCRIBE_CONFIGS)
def handle(context: Context, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if context.version == 0:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    else:
        wanted = set(request.resource_types) or {int(kind) for kind in ResourceType}
    if not wanted <= set(ResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = context.engines.cluster.image
    resources = [
        ConfigResource(name, kind) for kind in ResourceType if kind in wanted for name in _names(image, kind)
    ]
    return ListConfigResourcesResponse(config_resources=resources)


def _names(image: MetadataImage, kind: ResourceType) -> list[str]:
    if kind is ResourceType.TOPIC:
        return sorted(image.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker.id) for broker in image.brokers.values() if not broker.fenced]
    return sorted(resource.name for resource in image.configs if resource.type is kind)

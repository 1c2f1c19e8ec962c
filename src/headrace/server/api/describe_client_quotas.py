"""DescribeClientQuotas: the quotas of the entities a filter matches, as this broker's metadata has them.

- A component matches one name, the default, or any entity that has this type; a strict filter only entities with no other type.
- Versions differ in nothing but their encoding.
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.cluster.image import QuotaEntity
from headrace.server.cluster.quota_changes import ENTITY_TYPES, IP
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT, DEFAULT, ANY = 0, 1, 2
_MATCH_TYPES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", ANY: "MATCH_TYPE_SPECIFIED"}


@requires_on_cluster(Operation.DESCRIBE_CONFIGS)
def handle(context: Context, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    components = _checked(request.components)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                [EntityData(kind, name) for kind, name in entity],
                [ValueData(name, value) for name, value in values.items()],
            )
            for entity, values in context.engines.cluster.image.quotas.items()
            if _matches(entity, components, request.strict)
        ],
    )


def _checked(components: list[ComponentData]) -> dict[str, ComponentData]:
    found: dict[str, ComponentData] = {}
    for component in components:
        kind, match_type = component.entity_type, component.match_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in found:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if match_type not in _MATCH_TYPES:
            raise _invalid(f"Unknown match type {match_type}")
        if match_type == EXACT and component.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match_type != EXACT and component.match is not None:
            raise _invalid(
                f"Request specified {_MATCH_TYPES[match_type]}, but also specified a match string."
            )
        found[kind] = component
    if IP in found and len(found) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
    return found


def _matches(entity: QuotaEntity, components: dict[str, ComponentData], strict: bool) -> bool:
    parts = dict(entity)
    if strict and len(parts) != len(components):
        return False
    return all(
        kind in parts and (component.match_type == ANY or parts[kind] == component.match)
        for kind, component in components.items()
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)

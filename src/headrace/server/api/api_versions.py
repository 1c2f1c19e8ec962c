"""ApiVersions: what this broker serves.

- Always answered with the oldest response header, whatever the version asked.
- A version this broker does not know is answered in version 0 with UNSUPPORTED_VERSION and the list.
- 3: compact, the client's software name and version, feature levels  - 4: feature levels may start at 0
- 5: which broker of which cluster the client means to speak to; any other tells it to start over (KIP-1242)
"""

from __future__ import annotations

import re

from headrace.server.api.context import Context
from headrace.server.api.registry import ADVERTISED, APIS
from headrace.server.cluster import features
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (SOFTWARE.fullmatch(name) and SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.software_name = name
        context.connection.software_version = version
    cluster = context.engines.cluster
    image = cluster.image
    if context.version >= 5:
        known = request.cluster_id is not None
        if known != (request.node_id != -1):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if known and (request.cluster_id, request.node_id) != (image.cluster_id, cluster.broker_id):
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return ApiVersionsResponse(
        api_keys=_served(),
        # A client of version 3 rejects a level of 0.
        supported_features=[
            SupportedFeatureKey(name, low, high)
            for name, (low, high) in features.SUPPORTED.items()
            if low > 0 or context.version >= 4
        ],
        finalized_features_epoch=max(image.offset, 0),
        finalized_features=[
            FinalizedFeatureKey(name, level, level)
            for name in features.SUPPORTED
            if (level := features.level(image, name)) > 0
        ],
    )


def unsupported() -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_served())


def _served() -> list[ApiVersion]:
    return [ApiVersion(key, APIS[key].lowest, APIS[key].highest) for key in ADVERTISED]

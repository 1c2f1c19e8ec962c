"""UpdateFeatures: sets the level of a feature for the whole cluster, such as the transaction protocol.

- The controller decides; another broker passes the request on. All updates are made, or none.
- 0: a flag allows a downgrade, and each feature has its own answer  - 1: the kind of upgrade; a dry run
- 2: one answer for all
"""

from __future__ import annotations

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import update_features
from headrace.server.cluster.features import SAFE_DOWNGRADE, UPGRADE
from headrace.server.security.operations import Operation
from headrace.wire.errors import KafkaError
from headrace.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


@requires_on_cluster(Operation.ALTER)
@to_controller
async def handle(context: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if context.version == 0:
        for update in request.feature_updates:
            update.upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    response = UpdateFeaturesResponse(error_message=None)
    try:
        await context.engines.cluster.decide(update_features(request), request.validate_only)
    except KafkaError as error:
        response.error_code, response.error_message = error.code, error.message
    response.results = [
        UpdatableFeatureResult(update.feature, response.error_code, response.error_message)
        for update in request.feature_updates
    ]
    return response

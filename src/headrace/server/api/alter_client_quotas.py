"""AlterClientQuotas: how much users, client ids and addresses may use.

- All of one entity's changes happen or none; another entity's errors do not matter.
- The controller decides; another broker passes the request on.
- Versions differ in nothing but their encoding.
"""

from __future__ import annotations

import asyncio

from headrace.server.api.context import Context, denied
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import alter_client_quotas
from headrace.server.cluster.quota_changes import Alteration, host_names, unresolvable
from headrace.server.quotas.addresses import addresses_of
from headrace.server.security.operations import CLUSTER, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    ResponseEntityData,
    ResponseEntryData,
)


async def handle(context: Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    if not context.may_on_cluster(Operation.ALTER_CONFIGS):
        message = denied(context.principal, Operation.ALTER_CONFIGS, *CLUSTER)
        error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
        return _response(request, [error] * len(request.entries))
    return await _alter(context, request)


@to_controller
async def _alter(context: Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    requested = [_read(entry) for entry in request.entries]
    errors: list[KafkaError | None]
    try:
        unknown = await _unknown(context, requested)
        accepted = [None if _refused(each, unknown) else each for each in requested]
        decision = alter_client_quotas([each for each in accepted if each is not None])
        results = await context.engines.cluster.decide(decision, request.validate_only)
        decided = iter(results)
        errors = [
            _refused(each, unknown) if kept is None else next(decided)
            for each, kept in zip(requested, accepted, strict=True)
        ]
    except KafkaError as error:
        errors = [error] * len(requested)
    return _response(request, errors)


def _read(entry: EntryData) -> Alteration:
    return Alteration(
        [(part.entity_type, part.entity_name) for part in entry.entity],
        [(op.key, None if op.remove else op.value) for op in entry.ops],
    )


async def _unknown(context: Context, requested: list[Alteration]) -> set[str]:
    """Host names that nobody knows; a thread looks them up."""
    names = host_names(requested)
    if not names:
        return names

    def look_up() -> set[str]:
        return {name for name in names if not addresses_of(name)}

    return await asyncio.get_running_loop().run_in_executor(context.engines.disk, look_up)


def _refused(alteration: Alteration, unknown: set[str]) -> KafkaError | None:
    return next((unresolvable(name) for name in sorted(host_names([alteration]) & unknown)), None)


def _response(
    request: AlterClientQuotasRequest, errors: list[KafkaError | None] | list[KafkaError]
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(
                ErrorCode.NONE if error is None else error.code,
                None if error is None else error.message,
                [ResponseEntityData(part.entity_type, part.entity_name) for part in entry.entity],
            )
            for entry, error in zip(request.entries, errors, strict=True)
        ]
    )

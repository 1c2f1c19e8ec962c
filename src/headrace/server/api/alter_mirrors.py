"""AlterMirrors: makes, pauses, resumes, fails over and deletes mirror links. Headrace's own; not advertised.

- The controller decides; another broker passes the request on.
- The document names an `operation` and a `link`; `create` has the link's facts besides, `resume` and `failover` may have `topics`.
- The reply's document has the `topics` that the operation touched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from headrace.link.errors import SettingsError
from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster import mirror_links, mirror_states
from headrace.server.cluster.image import LinkState, MirrorLink
from headrace.server.mirror.options import LinkOptions
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_mirrors import AlterMirrorsRequest, AlterMirrorsResponse


@requires_on_cluster(Operation.ALTER)
@to_controller
async def handle(context: Context, request: AlterMirrorsRequest) -> AlterMirrorsResponse:
    try:
        touched = await _alter(context, json.loads(request.document))
    except (KeyError, TypeError, ValueError) as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"This is no request for mirror links: {error}."
        ) from None
    return AlterMirrorsResponse(document=json.dumps({"topics": touched}))


async def _alter(context: Context, wanted: Mapping[str, object]) -> Sequence[str]:
    cluster = context.engines.cluster
    operation, name = wanted["operation"], str(wanted["link"])
    topics = wanted.get("topics")
    names = [str(topic) for topic in topics] if isinstance(topics, list) else None
    match operation:
        case "create":
            link = _link(name, wanted)
            try:
                LinkOptions.of(link)
            except SettingsError as error:
                raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
            await cluster.decide(mirror_links.create_link(link, context.engines.clock.now_ms()))
        case "pause":
            await cluster.decide(mirror_links.set_state(name, LinkState.PAUSED))
        case "resume":
            await cluster.decide(mirror_links.set_state(name, LinkState.ACTIVE))
            return await cluster.decide(
                mirror_states.retry_topics(name, names, wanted.get("discard") is True)
            )
        case "failover":
            return await cluster.decide(mirror_states.fail_over(name, names))
        case "delete":
            await cluster.decide(mirror_links.delete_link(name))
        case _:
            raise ValueError(f"there is no operation {operation!r}")
    return []


def _link(name: str, wanted: Mapping[str, object]) -> MirrorLink:
    patterns, groups, settings = wanted["patterns"], wanted["groups"], wanted["settings"]
    throttle = wanted["throttle"]
    if not (isinstance(patterns, list) and isinstance(groups, list) and isinstance(settings, dict)):
        raise ValueError("patterns and groups are lists, settings are an object")
    if not isinstance(throttle, int):
        raise ValueError("throttle is a number")
    return MirrorLink(
        name,
        tuple(map(str, patterns)),
        {str(key): str(value) for key, value in settings.items()},
        tuple(map(str, groups)),
        throttle,
        adopts=wanted.get("adopts") is True,
    )

"""Whether a client may read or write topics, for the record path: a look into a set when it was allowed before.

A connection keeps its sets (`Connection.permissions`) until its peer logs in as somebody else; a change of ACLs empties them.
"""

from __future__ import annotations

from functools import partial

from headrace.server.api.context import Context
from headrace.server.replica.fetching import Permission
from headrace.server.security.operations import TOPIC, Operation
from headrace.server.security.permitted import Known


def topic_permission(context: Context, operation: Operation, by_id: bool) -> Permission:
    """The topics that the client is known to be allowed, and whom to ask about the others."""
    connection = context.connection
    permission = connection.permissions.get(operation << 1 | by_id)
    if permission is None:
        topics = context.engines.permitted_topics
        if topics is None:
            known = Known()
            return known, partial(_ask, context, operation, by_id, known)
        known = topics.of(connection.principal, connection.peer_host, operation, by_id)
        # A context of its own, for what every request with this operation has in common.
        asking = Context(context.engines, connection, context.version, 0, context.client_id, api=context.api)
        permission = known, partial(_ask, asking, operation, by_id, known)
        connection.permissions[operation << 1 | by_id] = permission
    return permission


def _ask(context: Context, operation: Operation, by_id: bool, known: Known, topic: bytes) -> bool:
    """Whether the client may do this to a topic that is not among the `known` ones. An id that nobody has is forbidden to nobody."""
    engines = context.engines
    acls, topics = engines.acls, engines.permitted_topics
    generation = acls.generation if acls is not None else 0
    name = engines.replicas.name_of(topic, by_id)
    if name is None:
        return True
    if not context.may(operation, TOPIC, name):
        return False
    if topics is not None:
        topics.add(known, topic, generation)
    return True

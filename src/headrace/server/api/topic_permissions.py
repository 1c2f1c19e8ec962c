"""Whether a client may read or write topics, for the record path: a look into a set when it was allowed before."""

from __future__ import annotations

import logging

from headrace.server.api.context import Context
from headrace.server.security.audit import AUDIT
from headrace.server.security.operations import TOPIC, Operation
from headrace.server.security.permitted import Known


def known_topics(context: Context, operation: Operation, by_id: bool) -> Known:
    """Topics that the client is known to be allowed; the set is emptied when ACLs change."""
    topics = context.engines.permitted_topics
    if topics is None or AUDIT.isEnabledFor(logging.DEBUG):
        return Known()  # The audit log is to have a line for every request.
    connection = context.connection
    return topics.of(connection.principal, connection.peer_host, operation, by_id)


def ask_for_topic(context: Context, operation: Operation, by_id: bool, known: Known, topic: bytes) -> bool:
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

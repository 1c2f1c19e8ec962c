"""Whether a client may read or write topics, for the record path: a look into a set when it was allowed before."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.server.api.context import Context
from headrace.server.security.audit import AUDIT
from headrace.server.security.operations import TOPIC, Operation


def known_topics(context: Context, operation: Operation, by_id: bool) -> set[bytes]:
    """Topics that the client is known to be allowed. Good until the ACLs change."""
    topics = context.engines.permitted_topics
    if topics is None or AUDIT.isEnabledFor(logging.DEBUG):
        return set()  # The audit log is to have a line for every request.
    connection = context.connection
    return topics.of(connection.principal, connection.peer_host, operation, by_id)


def ask_for_topic(
    context: Context, operation: Operation, by_id: bool, topic: bytes, known: set[bytes]
) -> bool:
    """Whether the client may do this to a topic that is not among the `known` ones. An id that nobody has is forbidden to nobody."""
    engines = context.engines
    name = engines.replicas.name_of(topic, by_id)
    if name is None:
        return True
    if not context.may(operation, TOPIC, name):
        return False
    if engines.permitted_topics is not None:
        engines.permitted_topics.add(known, topic)
    return True


def topic_check(context: Context, operation: Operation, by_id: bool) -> Callable[[bytes], bool]:
    """Whether the client may do this to a topic, for a request that may wait: ACLs that change meanwhile count."""
    acls = context.engines.acls
    seen = acls.generation if acls is not None else 0
    known = known_topics(context, operation, by_id)
    denied: set[bytes] | None = None

    def check(topic: bytes) -> bool:
        nonlocal seen, known, denied
        if acls is None:
            return ask_for_topic(context, operation, by_id, topic, set())
        if acls.generation != seen:
            seen = acls.generation
            known = known_topics(context, operation, by_id)
            denied = None
        if topic in known:
            return True
        if denied is not None and topic in denied:
            return False  # Another partition of it was asked for already.
        if ask_for_topic(context, operation, by_id, topic, known):
            return True
        denied = {topic} if denied is None else denied | {topic}
        return False

    return check

"""Metadata: the brokers, and the leader and replicas of each partition.

- Any broker answers for the whole cluster, with the addresses of the listener the client came in by.
- A topic that is not there is created when the client and auto.create.topics.enable allow it, and described at once.
- 0: no topics asked means all; from 1 on, null does  - 4: the client may forbid creation  - 5: offline replicas
- 8-10: authorized operations  - 10: topic ids in replies  - 12: topics asked for by id  - 13: an error at the top

Describing thousands of partitions is slow in Python and asked often, so each topic's encoded description is kept until the
topic or a broker changes.
"""

from __future__ import annotations

import struct
import uuid

from headrace.server.api.context import Context
from headrace.server.api.forwarding import asking_client
from headrace.server.api.mutations import MutationCount, created
from headrace.server.cluster.image import MetadataImage, Topic
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.cluster.topics import check_topic_name
from headrace.server.security.operations import CLUSTER, NOT_ASKED, TOPIC, Operation
from headrace.wire.codec import encode, write_uvarint
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import reply_start
from headrace.wire.messages.create_topics import CreatableTopic
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.wire.schema import ZERO_UUID

_COUNT = struct.Struct(">i")


async def handle(context: Context, request: MetadataRequest) -> bytearray:
    asked = request.topics
    if asked is None or (context.version == 0 and not asked):
        image = context.engines.cluster.image
        visible, _ = context.split(
            Operation.DESCRIBE, TOPIC, image.topics.values(), lambda topic: topic.name, asked_for=False
        )
        return _answer(context, request, image, visible)
    missing: list[str] = []
    errors: dict[str, ErrorCode] = {}
    for each in asked:
        if each.name is None and context.version < 12:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic name can not be null in this version.")
        if each.name and not context.may(Operation.DESCRIBE, TOPIC, each.name):
            errors[each.name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif each.name and each.name not in context.engines.cluster.image.topics:
            missing.append(each.name)
    if missing:
        errors |= await _create(context, request, missing)
    image = context.engines.cluster.image
    found: list[Topic | MetadataResponseTopic] = []
    names: set[str] = set()
    for each in asked:
        if each.name is None or (each.topic_id != ZERO_UUID and context.version >= 12):
            found.append(_by_id(context, image, each.topic_id))
        elif each.name not in names:
            names.add(each.name)
            code = errors.get(each.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            known = image.topics.get(each.name)
            if known is None or code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                found.append(_absent(each.name, code))
            else:
                found.append(known)
    return _answer(context, request, image, found)


async def _create(context: Context, request: MetadataRequest, names: list[str]) -> dict[str, ErrorCode]:
    """Create the topics that do not exist, as far as allowed; returns an error for each of the others."""
    errors: dict[str, ErrorCode] = {}
    wanted: list[str] = []
    for name in names:
        try:
            check_topic_name(name)
        except KafkaError as error:
            errors[name] = error.code
        else:
            wanted.append(name)
    engines = context.engines
    if not wanted or not request.allow_auto_topic_creation:
        return errors
    if not engines.config.boolean("auto.create.topics.enable"):
        return errors
    if not context.may_on_cluster(Operation.CREATE, asked_for=False):
        wanted, denied = context.split(Operation.CREATE, TOPIC, wanted, str)
        errors |= dict.fromkeys(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if not wanted:
            return errors
    # Without a reply of its own to tell it, a client beyond its quota finds that the topics do not exist yet.
    specs, _ = MutationCount(context).split([CreatableTopic(name, -1, -1) for name in wanted], created)
    names = [spec.name for spec in specs]
    return errors | await engines.auto_topic_creation.create(names, asking_client(context))


def _absent(name: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(code, name, is_internal=name in INTERNAL_TOPICS)


def _by_id(context: Context, image: MetadataImage, topic_id: uuid.UUID) -> Topic | MetadataResponseTopic:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    if not context.may(Operation.DESCRIBE, TOPIC, topic.name):
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id)
    return topic


def _answer(
    context: Context,
    request: MetadataRequest,
    image: MetadataImage,
    topics: list[Topic] | list[Topic | MetadataResponseTopic],
) -> bytearray:
    version, listener = context.version, context.connection.listener_name
    kept = context.engines.encoded_topics.of(image, listener, version)
    with_operations = request.include_topic_authorized_operations
    controller = image.controller_id if image.alive(image.controller_id) else -1
    response = MetadataResponse(
        brokers=_brokers(image, listener), cluster_id=image.cluster_id, controller_id=controller
    )
    if request.include_cluster_authorized_operations:
        may_see = context.may_on_cluster(Operation.DESCRIBE)
        response.cluster_authorized_operations = context.operations_on(*CLUSTER) if may_see else 0
    out, tail = _start(response, context, len(topics))
    for topic in topics:
        if not isinstance(topic, Topic):
            encode(topic, version, out)
        elif with_operations:
            described = describe(image, topic, listener, version)
            described.topic_authorized_operations = context.operations_on(TOPIC, topic.name)
            encode(described, version, out)
        else:
            encoded = kept.get(topic.id)
            if encoded is None or encoded[0] is not topic:
                encoded = (topic, bytes(encode(describe(image, topic, listener, version), version)))
                kept[topic.id] = encoded
            out += encoded[1]
    out += tail
    _COUNT.pack_into(out, 0, len(out) - 4)
    return out


def _start(response: MetadataResponse, context: Context, count: int) -> tuple[bytearray, bytes]:
    """The reply frame up to its topics, with their number, and what comes after them."""
    version = context.version
    flexible = version >= MetadataResponse.FLEXIBLE
    out = encode(response, version, reply_start(0, context.correlation_id, flexible))
    after = 4 * (8 <= version <= 10) + 2 * (version >= 13) + flexible
    tail = bytes(out[len(out) - after :])
    del out[len(out) - after - (1 if flexible else 4) :]
    if flexible:
        write_uvarint(out, count + 1)
    else:
        out += _COUNT.pack(count)
    return out, tail


def _brokers(image: MetadataImage, listener: str) -> list[MetadataResponseBroker]:
    brokers = []
    for broker in image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None and not broker.fenced:
            brokers.append(MetadataResponseBroker(broker.id, endpoint.host, endpoint.port, broker.rack))
    return brokers


def describe(image: MetadataImage, topic: Topic, listener: str, version: int) -> MetadataResponseTopic:
    alive = {
        broker.id
        for broker in image.brokers.values()
        if not broker.fenced and broker.endpoint(listener) is not None
    }
    partitions = []
    for index, partition in enumerate(topic.partitions):
        replicas, isr = list(partition.replicas), list(partition.isr)
        error = ErrorCode.NONE
        leader = partition.leader
        if version == 0:
            # The oldest clients assume that every replica in the list is reachable.
            replicas = [broker for broker in replicas if broker in alive]
            isr = [broker for broker in isr if broker in alive]
            if len(replicas) < len(partition.replicas):
                error = ErrorCode.REPLICA_NOT_AVAILABLE
        if leader not in alive:
            known = version >= 6 and image.alive(leader)
            error = ErrorCode.LISTENER_NOT_FOUND if known else ErrorCode.LEADER_NOT_AVAILABLE
            leader = -1
        offline = [broker for broker in partition.replicas if broker not in alive]
        partitions.append(
            MetadataResponsePartition(
                error, index, leader, partition.leader_epoch, replicas, isr, offline_replicas=offline
            )
        )
    return MetadataResponseTopic(
        ErrorCode.NONE, topic.name, topic.id, topic.name in INTERNAL_TOPICS, partitions, NOT_ASKED
    )

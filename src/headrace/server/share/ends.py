"""Where partitions end, whoever leads them: what the lag of a share group is measured against."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from headrace.server.cluster.peers import Peers
from headrace.server.replica.replicas import Replicas
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

Place = tuple[str, int]
VERSION = 7
LATEST = -1
NO_LEADER = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "The partition has no leader that answers.")


class Ends:
    def __init__(self, replicas: Replicas, peers: Peers) -> None:
        self._replicas = replicas
        self._peers = peers

    async def of(self, places: Collection[Place]) -> dict[Place, int | KafkaError]:
        found: dict[Place, int | KafkaError] = {}
        elsewhere: dict[int, list[Place]] = {}
        for topic, index in places:
            leader = self._replicas.current_leader(topic.encode(), index, by_id=False)
            if leader is None or leader[0] < 0:
                found[topic, index] = NO_LEADER
            elif leader[0] != self._replicas.broker_id:
                elsewhere.setdefault(leader[0], []).append((topic, index))
            else:
                found[topic, index] = self._here(topic, index)
        for answers in await asyncio.gather(*(self._ask(*each) for each in elsewhere.items())):
            found |= answers
        return found

    def _here(self, topic: str, index: int) -> int | KafkaError:
        try:
            return self._replicas.find(topic.encode(), index, by_id=False).log.high_watermark
        except KafkaError as error:
            return error

    async def _ask(self, broker: int, places: list[Place]) -> dict[Place, int | KafkaError]:
        found: dict[Place, int | KafkaError] = dict.fromkeys(places, NO_LEADER)
        topics: dict[str, ListOffsetsTopic] = {}
        for topic, index in places:
            asked = ListOffsetsPartition(index, timestamp=LATEST)
            topics.setdefault(topic, ListOffsetsTopic(topic)).partitions.append(asked)
        try:
            reply = await self._peers.call(
                broker, ListOffsetsRequest(-1, topics=list(topics.values())), VERSION
            )
        except OSError:
            return found
        for answer in reply.topics:
            for each in answer.partitions:
                error = KafkaError(ErrorCode(each.error_code))
                found[answer.name, each.partition_index] = error if each.error_code else each.offset
        return found

"""Looks at what a cluster is doing, again and again: counts between one look and the next make rates.

The protocol alone is enough, so it works with Apache Kafka, too: records by how far offsets move, bytes by how much logs grow, what is
read by what groups commit, clients by the members of groups. Where brokers serve /metrics and /clients (`broker_pages`), their own
counts take the place of these.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from headrace.client import broker_pages
from headrace.client.activity import Activity, BrokerActivity, ClientActivity, TopicActivity
from headrace.client.administration import groups, log_dirs
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.client.broker_pages import Place
from headrace.client.connected_clients import ConnectedClient, merge
from headrace.client.errors import BrokerError
from headrace.client.lag import GroupLag, LagMeter
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse

T = TypeVar("T")

_LATEST, _CONSUMER = -1, -1
_SAMPLE = re.compile(
    r'^kafka_server_brokertopicmetrics_(messagesin|bytesin|bytesout)_total\{topic="([^"]+)"\} (\S+)',
    re.MULTILINE,
)
_COUNTED = (("messagesin", "records_in"), ("bytesin", "bytes_in"), ("bytesout", "bytes_out"))


class Rates:
    """How fast counters grow. A counter that was not there at the look before has no rate; one that began anew has none either."""

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[float, float]] = {}
        self._now: dict[Hashable, tuple[float, float]] = {}

    def of(self, key: Hashable, count: float) -> float | None:
        now = time.monotonic()
        self._now[key] = count, now
        before = self._before.get(key)
        if before is None or count < before[0] or now <= before[1]:
            return None
        return (count - before[0]) / (now - before[1])

    def next_look(self) -> None:
        self._before, self._now = self._now, {}


class ActivityMeter:
    """Looks through a session; keep it, for rates are made of two looks."""

    def __init__(self, session: Session, lag: LagMeter, places: Sequence[Place] = ()) -> None:
        """`places` are where brokers serve their pages."""
        self._session = session
        self._lag = lag
        self._places = places
        self._rates = Rates()
        self._looked: float | None = None

    def look(self) -> Activity:
        """Raises BrokerError when no broker tells what the cluster looks like."""
        now = time.monotonic()
        seen = Activity(time.time(), None if self._looked is None else now - self._looked)
        self._looked = now
        self._rates.next_look()
        self._session.look_again()
        metadata = self._session.call(MetadataRequest(None, allow_auto_topic_creation=False))
        brokers, topics = _brokers(metadata), _topics(metadata)
        self._offsets(metadata, brokers, topics, seen.problems)
        self._sizes(metadata, brokers, topics, seen.problems)
        seen.brokers = [brokers[each] for each in sorted(brokers)]
        seen.topics = [topics[each] for each in sorted(topics)]
        members = self._groups(seen, topics)
        self._counted(seen, brokers, topics)
        seen.clients = self._connected(seen, brokers) if self._places else []
        seen.clients = seen.clients or _members(members, seen.groups)
        return seen

    def _offsets(
        self,
        metadata: MetadataResponse,
        brokers: Mapping[int, BrokerActivity],
        topics: Mapping[str, TopicActivity],
        problems: list[str],
    ) -> None:
        """Records in, by how far the ends of partitions move."""
        by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for topic in metadata.topics:
            for partition in topic.partitions:
                if topic.name and partition.leader_id in brokers:
                    by_leader[partition.leader_id][topic.name].append(partition.partition_index)
        for leader, asked in by_leader.items():
            request = ListOffsetsRequest(
                _CONSUMER,
                topics=[
                    ListOffsetsTopic(
                        name, [ListOffsetsPartition(index, timestamp=_LATEST) for index in indexes]
                    )
                    for name, indexes in asked.items()
                ],
            )
            answer = self._told(problems, partial(self._session.call, request, leader))
            for told in answer.topics if answer is not None else ():
                for place in told.partitions:
                    if place.error_code:
                        continue
                    rate = self._rates.of(("end", told.name, place.partition_index), place.offset)
                    _add(topics[told.name], "records_in", rate)
                    _add(brokers[leader], "records_in", rate)

    def _sizes(
        self,
        metadata: MetadataResponse,
        brokers: Mapping[int, BrokerActivity],
        topics: Mapping[str, TopicActivity],
        problems: list[str],
    ) -> None:
        """Sizes, and bytes in by how much the logs of leaders grow."""
        leaders = {
            (topic.name, partition.partition_index): partition.leader_id
            for topic in metadata.topics
            for partition in topic.partitions
        }
        for broker in brokers.values():
            found = self._told(problems, partial(log_dirs.describe, self._session, broker.broker))
            for replica in (each for one in found or () for each in one.replicas if not each.is_future):
                broker.size = (broker.size or 0) + replica.size
                key: Partition = replica.topic, replica.partition
                if leaders.get(key) != broker.broker:
                    continue
                topic = topics[replica.topic]
                topic.size = (topic.size or 0) + replica.size
                rate = self._rates.of(("size", broker.broker, *key), replica.size)
                _add(topic, "bytes_in", rate)
                _add(broker, "bytes_in", rate)

    def _groups(self, seen: Activity, topics: Mapping[str, TopicActivity]) -> dict[str, groups.Description]:
        """The lag of groups, and what they read; returns the groups with their members."""
        described: dict[str, groups.Description] = {}
        listed = self._told(seen.problems, partial(groups.listings, self._session, types=groups.ALL_TYPES))
        for name in sorted(each.group for each in listed or ()):
            try:
                described[name] = groups.describe(self._session, name)
                lag = self._lag.measure(name, description=described[name])
            except BrokerError:
                continue  # It was deleted since it was listed, or its coordinator moves: the next look has it again.
            seen.groups.append(lag)
            for each in lag.partitions:
                topic = topics.get(each.partition.topic)
                if topic is not None:
                    topic.lag = (topic.lag or 0) + each.records
                    _add(topic, "records_out", each.rate_out)
        return described

    def _counted(
        self, seen: Activity, brokers: Mapping[int, BrokerActivity], topics: Mapping[str, TopicActivity]
    ) -> None:
        """The counts of brokers that serve /metrics, in place of what was worked out from offsets and sizes."""
        known = [place for place in self._places if place.broker is not None]
        pages, errors = broker_pages.get_all(known, "/metrics")
        seen.problems += map(str, errors)
        if not pages:
            return
        complete = len(pages) == len(brokers)
        by_topic: dict[tuple[str, str], float] = defaultdict(float)
        known_topics: set[tuple[str, str]] = set()
        for place, page in pages.items():
            broker = brokers.get(place.broker if place.broker is not None else -1)
            if broker is None:
                continue
            totals: dict[str, float] = defaultdict(float)
            for what, topic, text in _SAMPLE.findall(page.decode("utf-8", "replace")):
                rate = self._rates.of(("metrics", place.broker, what, topic), float(text))
                if rate is not None:
                    totals[what] += rate
                    by_topic[topic, what] += rate
                    known_topics.add((topic, what))
            if seen.seconds is not None:
                broker.records_in, broker.bytes_in = totals["messagesin"], totals["bytesin"]
                broker.bytes_out = totals["bytesout"]
        if complete:  # Otherwise the sum would leave out what other brokers lead.
            for name, topic in topics.items():
                for what, attribute in _COUNTED:
                    if (name, what) in known_topics:
                        setattr(topic, attribute, by_topic[name, what])

    def _connected(self, seen: Activity, brokers: Mapping[int, BrokerActivity]) -> list[ClientActivity]:
        documents, errors = broker_pages.clients(self._places)
        seen.problems += map(str, errors)
        for document in documents:
            broker = brokers.get(document["broker"])
            if broker is not None:
                broker.connections = len(document["clients"])
        found = []
        for client in merge(documents):
            active = ClientActivity(
                client.client_id,
                client.principal or None,
                client.address,
                client.software or None,
                len(client.connections),
            )
            self._flows(client, active, brokers)
            found.append(active)
        return found

    def _flows(
        self, client: ConnectedClient, active: ClientActivity, brokers: Mapping[int, BrokerActivity]
    ) -> None:
        for each in client.connections:
            connection = each["broker"], each["address"], each["port"]
            for what in ("requests", "bytes_in", "bytes_out"):
                rate = self._rates.of((what, *connection), each[what])
                _add(active, what, rate)
                if what == "requests" and each["broker"] in brokers:
                    _add(brokers[each["broker"]], what, rate)

    def _told(self, problems: list[str], ask: Callable[[], T]) -> T | None:
        """What a broker answers; None when it does not, and the reason among the problems."""
        try:
            return ask()
        except BrokerError as error:
            if (problem := str(error)) not in problems:
                problems.append(problem)
            return None


def _brokers(metadata: MetadataResponse) -> dict[int, BrokerActivity]:
    found = {
        each.node_id: BrokerActivity(
            each.node_id, f"{each.host}:{each.port}", each.node_id == metadata.controller_id
        )
        for each in metadata.brokers
    }
    for topic in metadata.topics:
        for partition in topic.partitions:
            if partition.leader_id in found:
                found[partition.leader_id].leaders += 1
            for replica in partition.replica_nodes:
                if replica in found:
                    found[replica].replicas += 1
    return found


def _topics(metadata: MetadataResponse) -> dict[str, TopicActivity]:
    return {
        topic.name: TopicActivity(
            topic.name,
            topic.is_internal,
            len(topic.partitions),
            sum(each.leader_id < 0 for each in topic.partitions),
            sum(len(each.isr_nodes) < len(each.replica_nodes) for each in topic.partitions),
        )
        for topic in metadata.topics
        if topic.name
    }


def _add(to: object, attribute: str, rate: float | None) -> None:
    """A sum of those rates that are known."""
    if rate is not None:
        setattr(to, attribute, (getattr(to, attribute) or 0.0) + rate)


def _members(described: Mapping[str, groups.Description], lags: Sequence[GroupLag]) -> list[ClientActivity]:
    found: dict[tuple[str, str], ClientActivity] = {}
    for group, description in described.items():
        for member in description.members:
            key = _name(member)
            client = found.setdefault(key, ClientActivity(key[0], None, key[1], None))
            if group not in client.groups:
                client.groups += (group,)
            client.partitions = (client.partitions or 0) + len(member.assignment)
    for lag in lags:
        for each in lag.partitions:
            if each.member is not None and (reader := found.get(_name(each.member))) is not None:
                _add(reader, "records_out", each.rate_out)
    return [found[key] for key in sorted(found)]


def _name(member: groups.Member) -> tuple[str, str]:
    return member.client_id, member.host.removeprefix("/")

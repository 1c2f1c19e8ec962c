"""Two clusters, and a mirror link between them as commands make it; what tests look at on both sides."""

from pathlib import Path

from headrace.cli.cluster.connection import connect
from headrace.client.administration import features, mirrors
from headrace.testing.wire import WireClient, batch
from headrace.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.waiting import until

QUICK = {"refresh.topics.interval.seconds": "1", "sync.group.offsets.interval.seconds": "1"}


class Site:
    """The administrator's view of one cluster."""

    def __init__(self, bootstrap):
        self.cluster = connect(bootstrap, None)

    def allow_links(self):
        self.cluster.call(features.update, {"mirror.version": 1}, features.UPGRADE)
        return self

    def link(self, source, topics=(".*",), groups=(), name="dc", throttle=0, adopts=False, **settings):
        wanted = {"bootstrap.servers": source, **QUICK, **settings}
        self.cluster.call(mirrors.create, name, wanted, topics, groups, throttle, adopts)
        return self

    def call(self, operation, *arguments):
        return self.cluster.call(operation, *arguments)

    def topic(self, name, link="dc"):
        for each in self.cluster.call(mirrors.describe):
            for topic in each.topics:
                if each.name == link and topic.name == name:
                    return topic
        return None

    def caught_up(self, name, ends):
        """`ends` by partition."""
        topic = self.topic(name)
        found = {} if topic is None else {each.partition: each for each in topic.positions}
        return found.keys() >= ends.keys() and all(
            found[index].lag_records == 0 and found[index].end_offset == end for index, end in ends.items()
        )

    def await_copy(self, name, ends):
        until(lambda: self.caught_up(name, ends), f"the copy of {name} up to {ends}")

    def await_state(self, name, state):
        until(
            lambda: (topic := self.topic(name)) is not None and topic.state == state,
            f"{name} to be {state}",
        )


def produce(bootstrap, topic, *values, partition=0, records=None):
    """One batch; returns its answer."""
    data = records or batch(*values)
    request = ProduceRequest(
        None, -1, 10_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, data)])]
    )
    with WireClient(bootstrap) as client:
        return client.call(request, 9).responses[0].partition_responses[0]


def segments(data: Path, topic, partition=0):
    """The bytes of a partition's log files, one after the other."""
    files = sorted((data / f"{topic}-{partition}").glob("*.log"))
    return b"".join(file.read_bytes() for file in files)

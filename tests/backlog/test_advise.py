"""What would help a group that is behind: the rules by figures, and real groups on a real broker that need each kind of help."""

import threading
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from headrace.backlog.advise import Facts, advise, is_draining_in_time
from headrace.backlog.facts import measure
from headrace.backlog.samples import Sample, sample
from headrace.client import TopicPartition
from headrace.client.admin import session_of
from headrace.client.administration.groups import Member
from headrace.client.administration.lag import ONE_RECORD
from headrace.client.lag import GroupLag, LagMeter, LagMonitor, PartitionLag
from headrace.client.lag_states import LagState
from headrace.wire.records import Record

HALF_AN_HOUR = 1800.0


def member(name):
    return Member(name, None, name, "/10.0.0.1", [], None, None, None)


def part(number, records=1000, state=LagState.GROWING, rate_in=100.0, rate_out=50.0, who="a", **more):
    return PartitionLag(
        TopicPartition("orders", number),
        500,
        500 + records,
        records,
        60.0,
        state,
        rate_in - rate_out,
        rate_in,
        rate_out,
        member=member(who) if who else None,
        **more,
    )


def facts(*parts, members=2, state=LagState.GROWING, partitions=None, **more):
    lag = GroupLag("billing", 0.0, parts, state, members)
    return Facts(lag, 20.0, {"orders": partitions or len(parts)}, **more)


def kinds(found):
    return [each.kind for each in found]


def test_a_group_that_has_read_everything_or_soon_will_needs_nothing():
    assert advise(facts(part(0, records=0)), HALF_AN_HOUR) == []
    draining = facts(part(0, rate_in=10.0, rate_out=100.0), state=LagState.DRAINING)
    assert advise(draining, HALF_AN_HOUR) == []
    assert is_draining_in_time(draining.lag, HALF_AN_HOUR)
    assert not is_draining_in_time(draining.lag, 5.0)


def test_more_members_are_counted_from_what_one_reads():
    four = facts(*(part(number, who="ab"[number % 2]) for number in range(8)))
    [members, divert] = advise(four, HALF_AN_HOUR)
    assert (members.kind, divert.kind) == ("more-members", "divert")
    # 8 partitions at 50/s by 2 members: 200 each; 800 arrive, and 8,000 unread in 1,800 s are 4.4 more: 804.4 / 200.
    assert members.sentence == "Start 3 more members, 5 in all."
    assert members.arithmetic.startswith(
        "2 members read 200 records/s each; 800 arrive, and 8,000 unread within 30 min are 4 more: 5"
    )
    assert divert.command == "headrace backlog divert billing --topic orders"


def test_partitions_are_what_is_missing_when_each_has_its_member():
    full = facts(part(0, who="a"), part(1, who="b"), idle_members=1, members=3)
    found = advise(full, HALF_AN_HOUR)
    assert kinds(found) == ["more-partitions", "divert"]
    assert found[0].command == "headrace topics alter orders --partitions 5"
    assert "1 more have no partition" in found[0].arithmetic


def test_a_member_that_reads_less_than_half_of_the_others_is_named():
    found = advise(
        facts(part(0, who="slow", rate_out=5.0), part(1, who="b"), part(2, who="c"), members=3), HALF_AN_HOUR
    )
    slow = found[0]
    assert slow.kind == "slow-member"
    assert "slow at 10.0.0.1" in slow.sentence
    assert slow.arithmetic == "5 records/s, the others 50 each."


def test_a_first_record_that_is_never_handled_counts_though_nothing_was_committed():
    never = replace(part(0, state=LagState.UNKNOWN, rate_out=0.0), committed=None)
    first = advise(facts(never, part(1)), HALF_AN_HOUR)[0]
    assert (first.kind, "nothing committed yet, at offset 500" in first.arithmetic) == ("poison-record", True)
    nobody = replace(never, member=None)
    assert "poison-record" not in kinds(advise(facts(nobody, part(1)), HALF_AN_HOUR))


def keyed(*keys, batches=1, size=100_000):
    records = tuple(Record(number, 0, key, b"") for number, key in enumerate(keys))
    return Sample(records, batches, size)


def test_a_hot_key_is_told_from_keys_that_are_merely_uneven():
    parts = part(0, records=9000, rate_in=900.0), part(1, rate_in=50.0), part(2, rate_in=50.0)
    hot = {TopicPartition("orders", 0): keyed(*[b"ada"] * 7, b"ben", b"tom", None)}
    first = advise(facts(*parts, samples=hot), HALF_AN_HOUR)[0]
    assert first.kind == "hot-key"
    assert "Split the key ada of orders" in first.sentence
    assert "70% of 10 unread records" in first.arithmetic
    many = {TopicPartition("orders", 0): keyed(*(b"%d" % number for number in range(50)))}
    assert kinds(advise(facts(*parts, samples=many), HALF_AN_HOUR))[0] == "slow-partition"


def test_small_batches_are_found_in_what_is_unread():
    tiny = {TopicPartition("orders", 0): keyed(*[b"k%d" % n for n in range(40)], batches=40, size=8_000)}
    found = advise(facts(part(0), part(1), samples=tiny), HALF_AN_HOUR)
    [larger] = [each for each in found if each.kind == "larger-batches"]
    assert "40 unread batches of orders-0 hold 1.0 records and 200 B on average" in larger.arithmetic
    large = {TopicPartition("orders", 0): keyed(*[b"k%d" % n for n in range(400)], batches=40, size=8_000)}
    assert "larger-batches" not in kinds(advise(facts(part(0), part(1), samples=large), HALF_AN_HOUR))


def test_retention_that_comes_before_the_group_does_is_to_be_raised_first():
    soon = facts(
        part(0, seconds_until_loss=7200.0),
        part(1),
        retention={"orders": (86_400.0, None)},
    )
    first = advise(soon, HALF_AN_HOUR)[0]
    assert (first.kind, first.command) == (
        "retention",
        "headrace configs alter topic orders --set retention.ms=172800000",
    )
    by_size = replace(soon, retention={"orders": (None, 1000)})
    assert advise(by_size, HALF_AN_HOUR)[0].command.endswith("--set retention.bytes=2000")
    later = facts(part(0, rate_in=0.0, rate_out=100.0, seconds_until_loss=7200.0), state=LagState.DRAINING)
    assert advise(later, HALF_AN_HOUR) == []


# Real groups.


@pytest.fixture
def measured(broker):
    """Measure a group as the command does."""

    def run(group, window=1.0):
        with LagMonitor(broker.bootstrap) as monitor:
            consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", **ONE_RECORD})
            session = session_of(monitor.admin)
            try:
                return measure(session, LagMeter(session, consumer, window), group, window)
            finally:
                consumer.close()

    return run


@pytest.fixture
def broker(make_broker):
    return make_broker({"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"})


def fill(broker, topic, count, partition=-1, key=None, batches=False):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number, key=key, partition=partition)
        if batches:
            producer.flush(30)
    assert producer.flush(60) == 0


class Reader:
    """A consumer in a thread that handles what it gets with `handle`, which says whether to commit it."""

    def __init__(self, broker, group, topic, handle):
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "client.id": f"{group}-reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])
        self._handle = handle
        self.reading = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        assert self.reading.wait(90)
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self):
        while not self._stop.wait(0.01):
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            if self._handle(message):
                place = Place(message.topic(), message.partition(), message.offset() + 1)
                self._consumer.commit(offsets=[place], asynchronous=False)
                self.reading.set()


def test_a_record_that_is_never_handled_is_shown_with_its_partition_offset_and_key(broker, measured):
    topic = broker.create_topic(partitions=2)
    fill(broker, topic, 3, partition=0, key=b"fine")
    fill(broker, topic, 3, partition=0, key=b"poison")
    reached = threading.Event()

    def handle(message):
        if message.key() == b"poison":
            reached.set()
        return message.key() != b"poison"

    with Reader(broker, "billing", topic, handle):
        assert reached.wait(90)
        fill(broker, topic, 5_000, partition=1)
        for _ in range(5):
            poison, *_ = advise(measured("billing"), HALF_AN_HOUR)
            if poison.kind == "poison-record":
                break
    assert poison.sentence == (
        f"Look at the record at offset 3 (key poison) of {topic}-0: the group gets past others but not past this one of "
        "billing-reader at 127.0.0.1."
    )
    assert f"headrace consume {topic} --partition 0 --offset 3 --max 1" in poison.command
    assert f"--topic {topic}:0 --to-offset 4 --execute" in poison.command


def test_a_member_that_cannot_keep_up_alone_is_to_get_company(broker, measured):
    topic = broker.create_topic(partitions=4)
    for partition in range(4):
        fill(broker, topic, 3_000, partition=partition)
    with Reader(broker, "slow", topic, lambda _: True):
        facts = measured("slow")
    found = {each.kind: each for each in advise(facts, 1.0)}
    assert facts.partitions == {topic: 4}
    assert found["more-members"].sentence == "Start 3 more members, 4 in all."
    assert found["more-members"].arithmetic.startswith("1 member reads ")
    assert found["more-partitions"].command.startswith(f"headrace topics alter {topic} --partitions ")
    assert found["divert"].command == f"headrace backlog divert slow --topic {topic}"


def test_a_hot_key_is_found_in_the_records_of_its_partition(broker, measured):
    topic = broker.create_topic(partitions=2)
    fill(broker, topic, 3_000, partition=0, key=b"celebrity")
    fill(broker, topic, 5, partition=1, key=b"others")
    with Reader(broker, "fans", topic, lambda _: True):
        found = {each.kind: each for each in advise(measured("fans"), 1.0)}
    assert found["hot-key"].sentence.startswith(f"Split the key celebrity of {topic}: ")
    assert "100% of " in found["hot-key"].arithmetic


def test_a_group_without_members_is_to_be_started(broker, measured):
    topic = broker.create_topic()
    fill(broker, topic, 10)
    with Reader(broker, "left", topic, lambda message: message.offset() < 3):
        pass
    [start] = advise(measured("left"), HALF_AN_HOUR)
    assert start.kind == "no-members"


def test_a_sample_has_the_keys_and_the_batches_as_they_were_written(broker):
    topic = broker.create_topic()
    fill(broker, topic, 30, key=b"same", batches=True)
    with LagMonitor(broker.bootstrap) as monitor:
        found = sample(session_of(monitor.admin), (topic, 0), 10)
        assert sample(session_of(monitor.admin), (topic, 0), 30) == Sample()
    assert found.commonest_key == (b"same", 1.0)
    assert (found.batches, len(found.records), found.records_per_batch) == (20, 20, 1.0)
    assert found.first is not None
    assert found.first.offset == 10

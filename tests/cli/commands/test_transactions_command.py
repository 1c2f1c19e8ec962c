from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from headrace.testing.broker import BrokerThread
from headrace.testing.wire import WireClient, batch
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.records import BatchBuilder


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker that does not verify transactional writes, as those before Kafka 3.6."""
    settings = {"transaction.partition.verification.enable": "false"}
    running = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    yield running
    running.stop()


@pytest.fixture
def ongoing(bootstrap, topic, name):
    """A transactional id with an open transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(30)
    yield name
    producer.abort_transaction(30)


@pytest.fixture
def hanging(bootstrap, topic):
    """The producer of a transactional write, long ago, that no coordinator was told of."""
    with WireClient(bootstrap) as client:
        producer_id = client.call(InitProducerIdRequest(None, 60000), 5).producer_id
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
        data = PartitionProduceData(0, batch(b"lost", builder=builder))
        request = ProduceRequest("nobody", -1, 10000, [TopicProduceData(topic, partition_data=[data])])
        assert client.call(request, 9).responses[0].partition_responses[0].error_code == 0
    return producer_id


def committed(bootstrap, topic):
    """What a reader of committed records gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(message.value())
    consumer.close()
    return found


def test_transactional_ids_are_listed_with_their_state(headrace, ongoing):
    (found,) = headrace("transactions", "list", "--pattern", ongoing, "--json").json
    assert (found["transactional_id"], found["coordinator"], found["state"]) == (ongoing, 1, "Ongoing")
    header, row = headrace("transactions", "list", "--state", "ongoing", "--pattern", ongoing).lines
    assert header.split("  ")[0] == "TRANSACTIONAL ID"
    assert row.split()[0] == ongoing
    assert headrace("transactions", "list", "--state", "completecommit", "--pattern", ongoing).out == ""
    assert headrace("transactions", "list", "--longer-than", "1h", "--pattern", ongoing).out == ""


def test_a_transaction_is_described_with_its_partitions(headrace, ongoing, topic):
    (found,) = headrace("transactions", "describe", ongoing, "--json").json
    assert (found["state"], found["partitions"]) == ("Ongoing", [{"topic": topic, "partition": 0}])
    head, _, row = headrace("transactions", "describe", ongoing).lines
    assert head.startswith(f"Transactional id {ongoing}: Ongoing, open for ")
    assert row.split() == [topic, "0"]


def test_a_transaction_that_is_over_is_not_said_to_be_open(headrace, bootstrap, topic, name):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x")
    producer.commit_transaction(30)
    (head, *_) = headrace("transactions", "describe", name).lines
    assert "Commit" in head
    assert ("open for" in head) == ("Prepare" in head), "the markers may still be on their way"


def test_producers_of_a_partition_are_shown_with_what_they_have_open(headrace, hanging, topic):
    (found,) = headrace("transactions", "producers", topic, "-p", 0, "--json").json
    assert (found["producer_id"], found["start_offset"], found["coordinator_epoch"]) == (hanging, 0, -1)


def test_a_hanging_transaction_is_found_and_aborted_and_its_readers_go_on(
    headrace, bootstrap, hanging, topic
):
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"after")
    producer.flush(30)
    assert committed(bootstrap, topic) == [], "the hanging transaction holds its readers up"
    (found,) = headrace("transactions", "find-hanging", "--topic", topic, "--json").json
    assert (found["topic"], found["partition"], found["producer_id"]) == (topic, 0, hanging)
    aborted = headrace("transactions", "abort", topic, "-p", 0, "--start-offset", found["start_offset"])
    assert aborted.out == f"Aborted the transaction of producer {hanging} from offset 0 of {topic}-0.\n"
    assert headrace("transactions", "find-hanging", "--broker", 1, "--topic", topic).out == ""
    assert committed(bootstrap, topic) == [b"after"]


def test_a_transaction_that_its_coordinator_knows_does_not_hang(headrace, ongoing, topic):
    ran = headrace("transactions", "find-hanging", "--topic", topic, "--max-timeout", "0s")
    assert (ran.code, ran.out, ran.err) == (0, "", "No transaction hangs.\n")


def test_a_producer_and_its_epochs_name_a_transaction_as_well(headrace, hanging, topic):
    who = ("--producer-id", hanging, "--producer-epoch", 0, "--coordinator-epoch", -1)
    ended = headrace("transactions", "abort", topic, "-p", 0, *who, "--json").json
    assert ended == {"topic": topic, "partition": 0, "producer_id": hanging}
    assert headrace("transactions", "find-hanging", "--topic", topic).out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("describe", "nobody-ever"), 1, "There is no transactional id 'nobody-ever'."),
        (("list", "--state", "asleep"), 2, "Valid states are: Empty, Ongoing"),
        (("list", "--longer-than", "soon"), 2, "soon"),
        (("list", "--pattern", "("), 1, "regular expression"),
        (("abort", "t", "-p", "0"), 2, "Say which transaction: --start-offset, or --producer-id"),
        (("abort", "nowhere", "-p", "0", "--start-offset", "0"), 1, "There is no topic 'nowhere'."),
        (("find-hanging", "--partition", "0"), 2, "--partition needs the --topic that it is of."),
        (("find-hanging", "--broker", "9"), 1, "There is no broker 9; the live ones are 1."),
    ],
)
def test_a_mistake_gets_one_sentence(headrace, arguments, code, sentence):
    ran = headrace("transactions", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_kafkas_tool_finds_and_aborts_with_its_own_flags(headrace, hanging, topic, ongoing):
    def tool(*arguments):
        ran = headrace("kafka", "transactions", *arguments)
        assert ran.code == 0, ran.err
        return [line.split() for line in ran.lines]

    assert [ongoing, "1"] in [row[:2] for row in tool("list", "--transactional-id-pattern", ongoing)]
    described = tool("describe", "--transactional-id", ongoing)[1]
    assert (described[0], described[4], described[-1]) == ("1", "Ongoing", f"{topic}-0")
    producers = tool("describe-producers", "--topic", topic, "--partition", 0)
    assert str(hanging) in [row[0] for row in producers[1:]]
    (found,) = tool("find-hanging", "--topic", topic, "--max-transaction-timeout", 15)[1:]
    assert found[:3] == [topic, "0", str(hanging)]
    tool("abort", "--topic", topic, "--partition", 0, "--start-offset", found[5])
    assert tool("find-hanging", "--broker-id", 1, "--topic", topic)[1:] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Say what to do"),
        (("find-hanging",), "requires either --topic or --broker-id"),
        (("abort", "--topic", "t"), "argument --partition is required"),
        (("abort", "--topic", "t", "--partition", "0"), "must be identified either with --start-offset"),
        (("describe",), "argument --transactional-id is required"),
    ],
)
def test_kafkas_tool_says_what_is_missing(headrace, arguments, sentence):
    ran = headrace("kafka", "transactions", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert sentence in ran.err

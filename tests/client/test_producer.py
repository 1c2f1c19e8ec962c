"""Sending: waiting, forgetting, calling back; acks; what is said when it fails. Sync and asyncio."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.client import (
    AsyncProducer,
    BrokerError,
    BufferFull,
    ConfigError,
    DeliveryError,
    Producer,
    Record,
    RecordMetadata,
    SerializationError,
    serializers,
)

NewTopic = Callable[..., str]
ReadAll = Callable[..., list[Record]]


def test_send_and_wait_says_where_the_record_is(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic(2)
    with Producer(bootstrap, linger_ms=0) as producer:
        first = producer.send_and_wait(topic, "a", key="k", partition=1, headers={"h": "x"}, timestamp=1234)
        second = producer.send_and_wait(topic, b"b", partition=1)
    assert first == RecordMetadata(topic, 1, 0, 1234)
    assert second.offset == 1
    [record, _] = read_all(topic)
    assert (record.key, record.value, record.headers, record.timestamp) == (b"k", b"a", (("h", b"x"),), 1234)


def test_futures_callbacks_and_forgotten_records_all_arrive(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    called: list[tuple[RecordMetadata | None, DeliveryError | None]] = []
    with Producer(bootstrap) as producer:
        futures = [producer.send(topic, str(number)) for number in range(5)]
        producer.send(topic, "5", on_delivery=lambda metadata, error: called.append((metadata, error)))
        producer.send_and_forget(topic, "6")
        assert [future.result(30).offset for future in futures] == [0, 1, 2, 3, 4]
        producer.flush(30)
        assert producer.failed == 0
    assert called[0][0] is not None
    assert (called[0][0].offset, called[0][1]) == (5, None)
    assert [record.value for record in read_all(topic)] == [str(n).encode() for n in range(7)]


def test_a_callback_that_raises_harms_nobody(bootstrap: str, new_topic: NewTopic) -> None:
    with Producer(bootstrap) as producer:
        future = producer.send(new_topic(), "x", on_delivery=lambda metadata, error: 1 / 0)
        assert future.result(30).offset == 0


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_works(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll, acks: object
) -> None:
    topic = new_topic()
    with Producer(bootstrap, acks=acks) as producer:
        metadata = producer.send_and_wait(topic, "x")
    # With acks=0 the broker says nothing, so nobody knows the offset.
    assert metadata.offset == (-1 if acks == 0 else 0)
    assert [record.value for record in read_all(topic)] == [b"x"]


@pytest.mark.parametrize("partitioner", ["murmur2", "hash_slots", "consistent_hash", "round_robin", "sticky"])
def test_records_go_where_the_partitioner_says(bootstrap: str, new_topic: NewTopic, partitioner: str) -> None:
    topic = new_topic(3)
    with Producer(bootstrap, partitioner=partitioner) as producer:
        sent = [producer.send(topic, "x", key=f"key-{number % 20}") for number in range(60)]
        placed = [future.result(30).partition for future in sent]
    assert set(placed) <= {0, 1, 2}
    if partitioner == "round_robin":
        assert placed == [0, 1, 2] * 20
    elif partitioner == "sticky":
        assert len(set(placed)) == 1
    else:
        assert placed[:20] == placed[20:40] == placed[40:]
        assert len(set(placed)) == 3


def test_an_unreachable_broker_fails_the_record_with_a_sentence(silent_broker: str) -> None:
    with Producer(silent_broker, delivery_timeout_ms=300, linger_ms=0) as producer:
        with pytest.raises(DeliveryError, match="a record for t was not acknowledged") as caught:
            producer.send_and_wait("t", "x")
        producer.send_and_forget("t", "y")
        producer.flush(30)
        assert producer.failed == 1
    assert "\n" not in str(caught.value)


def test_a_flush_that_is_too_short_says_how_many_are_left(silent_broker: str) -> None:
    producer = Producer(silent_broker, delivery_timeout_ms=2000)
    for _ in range(3):
        producer.send_and_forget("t", "x")
    with pytest.raises(DeliveryError, match="3 records were still unacknowledged after 0 s"):
        producer.flush(0)
    producer.close()
    with pytest.raises(ConfigError, match="closed"):
        producer.send("t", "x")


def test_a_full_buffer_blocks_and_then_says_so(silent_broker: str) -> None:
    with Producer(
        silent_broker, queue_buffering_max_messages=2, max_block_ms=100, delivery_timeout_ms=2000
    ) as producer:
        producer.send("t", "1")
        producer.send("t", "2")
        with pytest.raises(BufferFull, match=r"stayed full for 0\.1 s \(max\.block\.ms\)"):
            producer.send("t", "3")


def test_a_partition_that_does_not_exist_is_named(bootstrap: str, new_topic: NewTopic) -> None:
    with Producer(bootstrap) as producer, pytest.raises(DeliveryError, match="fewer partitions"):
        producer.send_and_wait(new_topic(1), "x", partition=7)


def test_a_value_that_cannot_be_serialized_is_refused_before_it_is_sent(bootstrap: str) -> None:
    with (
        Producer(bootstrap, value_serializer=serializers.text()) as producer,
        pytest.raises(SerializationError),
    ):
        producer.send("t", 5)  # type: ignore[arg-type]


def test_many_threads_may_share_a_producer(bootstrap: str, new_topic: NewTopic, read_all: ReadAll) -> None:
    topic = new_topic(4)
    with Producer(bootstrap, partitioner="hash_slots") as producer:
        threads = [
            threading.Thread(
                target=lambda name=name: [
                    producer.send_and_forget(topic, f"{name}-{n}", key=str(name)) for n in range(200)
                ]
            )
            for name in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    values = [record.value.decode() for record in read_all(topic) if record.value]
    for name in range(4):
        assert [value for value in values if value.startswith(f"{name}-")] == [
            f"{name}-{n}" for n in range(200)
        ]


async def test_the_asyncio_producer_waits_forgets_and_calls_back(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    called: list[object] = []
    async with AsyncProducer(bootstrap, value_serializer=serializers.json()) as producer:
        metadata = await producer.send_and_wait(topic, {"n": 0}, key="k", headers={"h": "x"})
        futures = [await producer.send(topic, {"n": number}) for number in range(1, 500)]
        await producer.send(topic, {"n": 500}, on_delivery=lambda done, error: called.append(done))
        await producer.send_and_forget(topic, {"n": 501})
        assert [each.offset for each in await asyncio.gather(*futures)] == list(range(1, 500))
        await producer.flush()
        assert producer.failed == 0
    assert metadata.offset == 0
    records = await asyncio.to_thread(read_all, topic)
    assert len(records) == 502
    assert records[0].headers == (("h", b"x"),)
    assert len(called) == 1


async def test_the_asyncio_producer_fails_with_the_same_sentences(silent_broker: str) -> None:
    async with AsyncProducer(
        silent_broker, delivery_timeout_ms=2000, max_block_ms=100, queue_buffering_max_messages=1, linger_ms=0
    ) as producer:
        sent = await producer.send("t", "1")
        with pytest.raises(BufferFull, match=r"max\.block\.ms"):
            await producer.send("t", "2")
        with pytest.raises(DeliveryError, match="a record for t was not acknowledged"):
            await sent


class Unlucky(deque[Callable[[], None]]):
    """The loop empties it just before a second delivery is put in."""

    def __init__(self) -> None:
        super().__init__()
        self.second = threading.Event()

    def append(self, settle: Callable[[], None], /) -> None:
        if self:
            self.second.set()
        deadline = time.monotonic() + 30
        while self:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        super().append(settle)


async def test_no_delivery_is_left_behind_by_a_loop_that_looks_at_the_wrong_moment(bootstrap: str) -> None:
    async with AsyncProducer(bootstrap) as producer:
        producer._delivered = delivered = Unlucky()
        settled = asyncio.Event()

        def deliver() -> None:
            producer._hand_over(lambda: None)
            producer._hand_over(settled.set)

        thread = threading.Thread(target=deliver)
        thread.start()
        assert delivered.second.wait(30)  # the loop looks at nothing until then
        await asyncio.wait_for(settled.wait(), 30)
        thread.join()


@pytest.mark.parametrize("raised", [SystemExit, asyncio.CancelledError])
def test_not_even_the_end_of_the_world_in_a_callback_ends_the_thread_that_serves_all(
    bootstrap: str, new_topic: NewTopic, raised: type[BaseException]
) -> None:
    topic = new_topic()

    def fail(metadata: object, error: object) -> None:
        raise raised

    with Producer(bootstrap, linger_ms=0) as producer:
        assert producer.send(topic, "x", on_delivery=fail).result(30).offset == 0
        assert producer.send(topic, "y").result(30).offset == 1


async def test_nor_does_it_in_the_event_loop(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()

    def fail(metadata: object, error: object) -> None:
        raise asyncio.CancelledError

    async with AsyncProducer(bootstrap) as producer:
        sent = [await producer.send(topic, str(number), on_delivery=fail) for number in range(50)]
        assert len(await asyncio.wait_for(asyncio.gather(*sent), 30)) == 50


def test_a_listener_that_raises_harms_nobody(bootstrap: str, new_topic: NewTopic) -> None:
    heard = threading.Event()

    def listen(statistics: str) -> None:
        heard.set()
        raise ValueError("a mistake")

    with Producer(bootstrap, linger_ms=0, stats_cb=listen, statistics_interval_ms=10) as producer:
        assert heard.wait(30)
        assert producer.send(new_topic(), "x").result(30).offset == 0


def test_what_is_not_acknowledged_when_the_time_to_close_is_over_fails(silent_broker: str) -> None:
    producer = Producer(silent_broker, linger_ms=0)
    sent = [producer.send("t", "x"), producer.send("t", "y", partition=0)]
    with pytest.raises(DeliveryError, match="still unacknowledged"):
        producer.close(0)
    for future in sent:
        assert isinstance(future.exception(30), DeliveryError)
    producer.close()


def test_whatever_is_sent_while_another_thread_closes_is_written_or_refused(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic()
    for _ in range(10):
        producer = Producer(bootstrap, linger_ms=0)
        futures: list[Future[RecordMetadata]] = []
        refused = threading.Event()

        def send(producer: Producer = producer, futures: list = futures, refused: object = refused) -> None:
            try:
                while True:
                    futures.append(producer.send(topic, "x"))
            except ConfigError:
                refused.set()

        thread = threading.Thread(target=send)
        thread.start()
        while not futures:
            time.sleep(0.001)
        producer.close()
        assert refused.wait(30)
        thread.join()
        assert all(future.result(30).offset >= 0 for future in futures)


def test_a_producer_cannot_be_used_in_a_forked_process() -> None:
    program = """
import os
from headrace.client import Consumer, Producer
producer, consumer = Producer("127.0.0.1:1"), Consumer("127.0.0.1:1", group_id="g")
if os.fork() == 0:
    for use in (
        lambda: producer.send("t", "x"), lambda: producer.send_and_wait("t", "x"), lambda: consumer.poll(0)
    ):
        try:
            use()
        except Exception as error:
            print(type(error).__name__, error)
    producer.close()
    consumer.close()
    print("closed", flush=True)
    os._exit(0)
os.wait()
os._exit(0)
"""
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    *sends, poll, last = child.stdout.splitlines()
    assert len(sends) == 2
    for send in sends:
        assert send.startswith("ConfigError the producer was made before this process was forked")
    assert poll.startswith("ConfigError the consumer was made before this process was forked")
    assert last == "closed"


def test_empty_is_not_null(bootstrap: str, new_topic: NewTopic, read_all: ReadAll) -> None:
    topic = new_topic()
    with Producer(bootstrap) as producer:
        for key, value in (("", ""), (None, None), (b"", None), (None, b"")):
            producer.send_and_wait(topic, value, key=key, headers={"empty": b"", "null": None}, partition=0)
    records = read_all(topic)
    assert [(record.key, record.value) for record in records] == [
        (b"", b""),
        (None, None),
        (b"", None),
        (None, b""),
    ]
    assert records[0].headers == (("empty", b""), ("null", None))


def test_a_function_may_serialize_to_text_and_to_nothing_else(
    bootstrap: str, new_topic: NewTopic, read_all: ReadAll
) -> None:
    topic = new_topic(2)
    with Producer(
        bootstrap, key_serializer=json.dumps, value_serializer=json.dumps, partitioner="hash_slots"
    ) as producer:
        producer.send_and_wait(topic, {"n": 1}, key=7)
    assert [(record.key, record.value) for record in read_all(topic)] == [(b"7", b'{"n": 1}')]
    with (
        Producer(bootstrap, value_serializer=len) as producer,
        pytest.raises(SerializationError, match="returned int, not bytes"),
    ):
        producer.send(topic, "x")


def test_a_header_of_another_type_is_refused_with_a_sentence(bootstrap: str) -> None:
    with Producer(bootstrap) as producer, pytest.raises(SerializationError, match="cannot be sent"):
        producer.send("t", "x", headers={"n": 5})  # type: ignore[dict-item]


def test_a_topic_that_can_never_be_is_refused_at_once(bootstrap: str) -> None:
    with (
        Producer(bootstrap, partitioner="hash_slots", max_block_ms=600_000) as producer,
        pytest.raises(BrokerError, match="asking for the partitions"),
    ):
        producer.send("no topic/at all", "x")


def test_an_asyncio_producer_is_made_inside_its_loop() -> None:
    with pytest.raises(ConfigError, match="inside the event loop"):
        AsyncProducer("127.0.0.1:1")


def test_a_fatal_error_that_is_told_while_closing_does_not_escape(bootstrap: str) -> None:
    producer = Producer(bootstrap)
    real = producer.librdkafka

    class Telling:
        """librdkafka, which tells of a fatal error in whichever call comes next."""

        told = False

        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

        def flush(self, timeout: float) -> int:
            if not self.told:
                self.told = True
                raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", True))
            return int(real.flush(timeout))

    producer.librdkafka = Telling()  # type: ignore[assignment]
    producer.close()

"""A user's program that names every public class with its types; mypy --strict reads it with the sources (make types).

Nothing runs it. ``assert_type`` fails the check when a class loses its types on the way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, assert_type

import sqlalchemy as sa
from redis import Redis

from headrace.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncRunner,
    Consumer,
    DeadLetter,
    DeadLetterBox,
    Group,
    GroupLag,
    Hook,
    LagMonitor,
    Metrics,
    Producer,
    Record,
    RecordMetadata,
    Retry,
    Runner,
    Topic,
    TopicPartition,
    Tracing,
    serializers,
)
from headrace.client.once import (
    LayeredStore,
    Once,
    RedisStore,
    SqlOnce,
    SqlStore,
    from_fields,
    from_header,
    update_if,
    upsert,
)
from headrace.client.outbox import FileOutbox, Relay, SqlOutbox


@dataclass
class Order:
    id: int


def producing() -> None:
    with Producer("localhost:9092") as plain:
        assert_type(plain.send("t", "text", key=b"bytes"), Future[RecordMetadata])
        assert_type(plain.send_and_wait("t", None, headers={"a": b"b", "c": None}), RecordMetadata)
    with Producer("localhost:9092", value_serializer=serializers.json(Order)) as typed:
        typed.send_and_forget("t", Order(1), key="k")
        typed.send("t", "not an order")  # type: ignore[arg-type]
        with typed.transaction():
            typed.send("t", Order(2), on_delivery=lambda metadata, error: None)


def consuming() -> None:
    with Consumer("localhost:9092", group_id="g") as plain:
        plain.subscribe("t", on_assign=lambda partitions: None)
        for record in plain:
            assert_type(record, Record[bytes, bytes])
            assert_type(record.value, bytes | None)
            plain.commit(record)
    with Consumer(
        "localhost:9092", key_deserializer=serializers.text(), value_deserializer=serializers.json(Order)
    ) as typed:
        typed.assign({TopicPartition("t", 0): 5})
        assert_type(typed.poll(), list[Record[str, Order]])
        assert_type(typed.position(TopicPartition("t", 0)), int | None)


async def in_asyncio() -> None:
    async with AsyncProducer("localhost:9092", value_serializer=serializers.json(Order)) as producer:
        assert_type(await producer.send_and_wait("t", Order(1)), RecordMetadata)
        assert_type(await (await producer.send("t", Order(1))), RecordMetadata)
    async with AsyncConsumer("localhost:9092", value_deserializer=serializers.json(Order)) as consumer:
        await consumer.subscribe("t")
        async with producer.transaction(consumer):
            assert_type(await consumer.poll(), list[Record[bytes, Order]])
        async for record in consumer:
            assert_type(record.value, Order | None)
    async with AsyncAdmin("localhost:9092") as admin:
        assert_type(await admin.topics(), list[str])
        assert_type(await admin.topic("t"), Topic)
        await admin.create_topic("t", partitions=3, exist_ok=True)
        assert_type(await admin.offsets("earliest", [TopicPartition("t", 0)]), dict[TopicPartition, int])


def looking_after() -> None:
    with Admin("localhost:9092") as admin:
        assert_type(admin.group("g"), Group)
        assert_type(admin.reset_group("g", "earliest", "t"), dict[TopicPartition, int])
    with LagMonitor("localhost:9092") as monitor:
        assert_type(monitor.measure("g"), GroupLag)
    with DeadLetterBox("t.dlq", "localhost:9092") as box:
        for letter in box.letters():
            assert_type(letter, DeadLetter)


def running(engine: sa.Engine, table: sa.Table) -> None:
    def handle(record: Record[bytes, Order]) -> int:
        return 0 if record.value is None else record.value.id

    async def handle_later(record: Record[bytes, Order]) -> int:
        return handle(record)

    orders = serializers.json(Order)
    hooks: list[Hook] = [Metrics(), Tracing()]
    Runner(
        handle,
        "localhost:9092",
        topics="t",
        group_id="g",
        value_deserializer=orders,
        retry=Retry(attempts=2),
        hooks=hooks,
    ).run()
    AsyncRunner(handle_later, "localhost:9092", topics="t", group_id="g", value_deserializer=orders)
    AsyncRunner(handle, "localhost:9092", topics="t", group_id="g", value_deserializer=orders)  # type: ignore[arg-type]

    store = LayeredStore(RedisStore(Redis()), SqlStore(engine))
    once = Once("n", store, id=from_fields("id"))
    assert_type(once(handle), Callable[[Record[bytes, Order]], int | None])
    assert_type(once(handle_later), Callable[[Record[bytes, Order]], Awaitable[int | None]])
    Runner(once(handle), "localhost:9092", topics="t", group_id="g", value_deserializer=orders)
    AsyncRunner(once(handle_later), "localhost:9092", topics="t", group_id="g", value_deserializer=orders)

    @SqlOnce("n", engine, id=from_header())
    def book(record: Record[bytes, Order], connection: sa.Connection) -> bool:
        return upsert(connection, table, {"id": 1}, {"version": 2}, version="version") and update_if(
            connection, table, {"id": 1}, {"version": 2}, {"version": 3}
        )

    assert_type(book, Callable[[Record[bytes, Order]], bool | None])
    Runner(book, "localhost:9092", topics="t", group_id="g", value_deserializer=orders)


def leaving_behind(engine: sa.Engine) -> None:
    orders = serializers.json(Order)
    with FileOutbox("outbox", value_serializer=orders) as journal, Relay(journal, "localhost:9092"):
        assert_type(journal.send("t", Order(1)), str)
    table = SqlOutbox(engine, value_serializer=orders)
    with Relay(table, "localhost:9092"), engine.begin() as connection:
        assert_type(table.send(connection, "t", Order(1)), str)


def untyped() -> None:
    with Consumer("localhost:9092", value_deserializer=serializers.json()) as consumer:
        assert_type(consumer.poll(), list[Record[bytes, Any]])

"""Serializers with a registry: what a producer sends as an object a consumer gets as one, also after the schema has grown."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from headrace.client import Consumer, Producer, registered
from headrace.client.avro_types import avro_schema_of
from headrace.client.errors import ConfigError, SerializationError
from headrace.testing.broker import BrokerThread
from headrace.testing.registry import RegistryThread


class Colour(enum.Enum):
    RED = "RED"
    BLUE = "BLUE"


@dataclass
class Item:
    name: str
    price: float


@dataclass
class Order:
    id: int
    items: list[Item]
    note: str | None = None
    paid: bool = False


@dataclass
class Everything:
    at: datetime.datetime
    day: datetime.date
    key: uuid.UUID
    colour: Colour
    data: bytes
    tags: dict[str, int]
    words: list[str] = field(default_factory=list)


class Customer(BaseModel):
    id: int
    name: str
    city: str | None = None


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), {"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture(scope="module")
def url(broker: BrokerThread) -> Iterator[str]:
    with RegistryThread(broker.bootstrap) as registry:
        yield registry.url


def test_a_dataclass_goes_through_a_topic(broker: BrokerThread, url: str) -> None:
    orders = registered.avro(url, "typed-orders-value", Order)
    sent = Order(7, [Item("pen", 1.5)], note="soon")
    broker.create_topic("typed-orders", 1)
    with Producer(broker.bootstrap, value_serializer=orders) as producer:
        producer.send_and_wait("typed-orders", sent)
    with Consumer(
        broker.bootstrap, group_id="typed", auto_offset_reset="earliest", value_deserializer=orders
    ) as consumer:
        consumer.subscribe("typed-orders")
        assert next(iter(consumer)).value == sent


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_models_and_dataclasses_both_ways(url: str, kind: str) -> None:
    make = getattr(registered, kind)
    customers = make(url, f"typed-customers-{kind}", Customer)
    ada = Customer(id=1, name="Ada")
    assert customers.deserialize(customers.serialize(ada)) == ada
    orders = make(url, f"typed-more-{kind}", Order)
    order = Order(1, [], paid=True)
    assert orders.deserialize(orders.serialize(order)) == order


def test_an_older_record_has_the_shape_of_the_readers_type(url: str) -> None:
    old = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    grown = {**old, "fields": [*old["fields"], {"name": "city", "type": "string", "default": "?"}]}
    data = registered.avro(url, "typed-grown", old).serialize({"id": 1})
    assert registered.avro(url, "typed-grown", grown).deserialize(data) == {"id": 1, "city": "?"}


def test_every_type_that_avro_has_one_for(url: str) -> None:
    made = registered.avro(url, "typed-everything", Everything)
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    sent = Everything(now, now.date(), uuid.UUID(int=7), Colour.BLUE, b"\0", {"a": 1}, ["x"])
    schema = avro_schema_of(Everything)
    assert [each["name"] for each in schema["fields"]] == list(Everything.__dataclass_fields__)
    assert schema["fields"][3]["type"] == {"type": "enum", "symbols": ["RED", "BLUE"], "name": "Colour"}
    plain = registered.avro(url, "typed-everything", schema)
    values = {**vars(sent), "colour": "BLUE"}
    assert plain.deserialize(plain.serialize(values)) == values
    assert made.deserialize(plain.serialize(values)) == sent
    assert made.deserialize(made.serialize(sent)) == sent


def test_what_avro_has_nothing_for_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="neither a dataclass nor a pydantic model"):
        avro_schema_of(int)
    with pytest.raises(ConfigError, match="Avro has no type for"):
        registered.avro(
            "http://127.0.0.1:1", "x", type("Bad", (BaseModel,), {"__annotations__": {"x": object}})
        )


def test_a_value_that_does_not_fit_is_refused(url: str) -> None:
    orders = registered.avro(url, "typed-strict", Order)
    with pytest.raises((SerializationError, ValueError, AttributeError, TypeError)):
        orders.serialize(Order("seven", []))  # type: ignore[arg-type]

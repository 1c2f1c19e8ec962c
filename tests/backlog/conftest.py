"""What the tests of diverts share: a broker, topics with records that have ids, groups that stand somewhere."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from headrace.backlog import Backlogs
from headrace.client import Admin, Producer, TopicPartition
from headrace.testing.broker import BrokerThread


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "3"}
    with BrokerThread(tmp_path_factory.mktemp("broker"), settings) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap) as admin:
        yield admin


@pytest.fixture
def backlogs(bootstrap: str) -> Iterator[Backlogs]:
    with Backlogs(bootstrap) as backlogs:
        yield backlogs


@pytest.fixture
def group() -> str:
    return f"billing-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def write(bootstrap: str) -> Callable[..., None]:
    """Records with the ids FIRST to LAST-1 and a key each, spread over the partitions by their key."""

    def write(topic: str, first: int, last: int) -> None:
        with Producer(bootstrap) as producer:
            for number in range(first, last):
                producer.send_and_forget(topic, str(number), key=f"key-{number % 10}", headers={"h": b"v"})

    return write


@pytest.fixture
def behind(admin: Admin, group: str, write: Callable[..., None]) -> str:
    """A topic of two partitions with 100 records, of which the group has read the first five of each."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    admin.create_topic(topic, partitions=2, replication_factor=1)
    write(topic, 0, 100)
    admin.set_group_offsets(group, {TopicPartition(topic, number): 5 for number in range(2)})
    return topic

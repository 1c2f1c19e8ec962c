"""An idempotent producer with five requests in flight survives a restart of the broker that leads."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.process import BrokerProcess
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.records import BatchBuilder
from tests.server.requests import produce_request

SENT = 60


def send(client: WireClient, sequence: int) -> tuple[int, int]:
    """Error code and offset of the batch of an idempotent producer that begins with `sequence`."""
    builder = BatchBuilder(producer_id=4711, producer_epoch=0, base_sequence=sequence)
    for _ in range(2):
        builder.append(time.time_ns() // 1_000_000, None, bytes(500))
    reply = client.call(produce_request("orders", bytes(builder.build())), 9)
    answer = reply.responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_last_five_batches_may_be_sent_again_after_a_restart(tmp_path, end):
    broker = BrokerProcess(tmp_path / "data").start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
        with WireClient(broker.bootstrap) as client:
            for number in range(SENT):
                assert send(client, number * 2) == (0, number * 2)
        getattr(broker, end)()
        if end == "stop":
            assert list((broker.data / "orders-0").glob("*.snapshot"))
        broker.start()
        with WireClient(broker.bootstrap) as client:
            for number in range(SENT - 5, SENT):
                assert send(client, number * 2) == (0, number * 2)
            assert send(client, (SENT - 6) * 2)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert send(client, SENT * 2) == (0, SENT * 2)
    finally:
        broker.kill()

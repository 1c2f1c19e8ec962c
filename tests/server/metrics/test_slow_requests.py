"""The log of slow requests: which are in it, and what it says of them."""

import logging
import re
import time

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from headrace.server.api.registry import APIS
from headrace.testing.wire import WireClient, batch
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.server.requests import fetch_request, produce_request
from tests.waiting import until

LINE = re.compile(
    r"slow request: (\w+) from (.*) took ([\d.]+) ms \(request queue ([\d.]+), local ([\d.]+), remote ([\d.]+), "
    r"response queue ([\d.]+), response send ([\d.]+)\)"
)


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.WARNING, "headrace.slow")
    return lambda: [
        LINE.fullmatch(each.getMessage()) for each in caplog.records if each.name == "headrace.slow"
    ]


@pytest.fixture
def sluggish(monkeypatch):
    """ListGroups takes a while of the broker's own time."""
    api = APIS[ListGroupsRequest.API_KEY]
    api.load()

    def handle(context, request):
        time.sleep(0.05)
        return ListGroupsResponse()

    monkeypatch.setattr(api, "handle", handle)


def test_a_slow_request_is_logged_with_its_client_and_its_phases(make_broker, sluggish, lines):
    broker = make_broker({"headrace.slow.request.ms": 40})
    with WireClient(broker.bootstrap) as client:
        numbers = [client.send(ListGroupsRequest(), 4) for _ in range(2)]
        for number in numbers:
            client.receive(ListGroupsRequest(), 4, number)
    until(lambda: len(lines()) == 2)
    for name, who, total, queue, local, *others in (line.groups() for line in lines()):
        assert name == "ListGroups"
        assert who.startswith("User:ANONYMOUS at 127.0.0.1 (")
        assert float(local) >= 50
        phases = [float(each) for each in (queue, local, *others)]
        assert float(total) == pytest.approx(sum(phases), abs=0.5)


def test_a_fetch_that_waits_as_long_as_it_asked_to_is_not_slow(make_broker, lines):
    broker = make_broker({"headrace.slow.request.ms": 200})
    topic = broker.create_topic()
    with WireClient(broker.bootstrap, timeout=60) as client:
        client.call(produce_request(topic, batch(b"a")), 9)
        client.call(fetch_request(topic, offset=1, max_wait_ms=600), 11)
    assert [line for line in lines() if line[1].startswith("Fetch")] == []


def test_it_is_off_until_somebody_sets_it_and_can_be_set_while_the_broker_runs(make_broker, sluggish, lines):
    broker = make_broker()
    with WireClient(broker.bootstrap) as client:
        client.call(ListGroupsRequest(), 4)
        assert lines() == []
        entry = ConfigEntry("headrace.slow.request.ms", "40", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(60)
        until(lambda: broker.node.requests.slow_seconds < 1)
        client.call(ListGroupsRequest(), 4)
    until(lambda: any(line[1] == "ListGroups" for line in lines()))

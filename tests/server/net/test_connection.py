"""A connection whose request cannot be finished is closed or continues; it never just stays silent."""

import asyncio
import contextlib
import time

import pytest

from headrace.server.api.registry import APIS
from headrace.server.replica.fetching import FetchReader
from headrace.testing.wire import WireClient
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from tests.server.requests import fetch_request


@pytest.fixture
def client(bootstrap):
    with WireClient(bootstrap, timeout=10) as client:
        yield client


def fetch_from_the_end(topic, max_wait_ms):
    return fetch_request(topic, max_wait_ms=max_wait_ms)


@pytest.mark.sources("FetchReader.read")
def test_a_waiting_fetch_that_fails_closes_its_connection(client, topic, monkeypatch):
    read, looks = FetchReader.read, []

    def read_once(self, *args, **kwargs):
        looks.append(1)
        if len(looks) > 1:
            raise RuntimeError("a fault that a test put here")
        return read(self, *args, **kwargs)

    monkeypatch.setattr(FetchReader, "read", read_once)
    client.send(fetch_from_the_end(topic, 100), 11)
    assert client.is_closed_by_broker()


@pytest.mark.parametrize("waiting", [(), (0,), (6,), (0, 3, 6), range(7)])
def test_requests_of_one_turn_are_all_answered_though_some_have_to_wait(bootstrap, monkeypatch, waiting):
    async def answer(request):
        if request.transactional_id == "waits":
            await asyncio.sleep(0.05)
        return EndTxnResponse(producer_id=request.producer_id)

    def handle(context, request):
        if request.transactional_id == "blocks":
            time.sleep(0.2)  # while the others arrive
            return EndTxnResponse()
        return answer(request)

    api = APIS[EndTxnRequest.API_KEY]
    api.load()
    monkeypatch.setattr(api, "handle", handle)
    with contextlib.ExitStack() as stack:
        blocker, *clients = (stack.enter_context(WireClient(bootstrap, timeout=10)) for _ in range(8))
        blocker.send(EndTxnRequest("blocks", 1, 0, True), 5)
        sent = []
        for index, client in enumerate(clients):
            for producer_id in range(3):
                request = EndTxnRequest("waits" if index in waiting else "quick", producer_id, 0, True)
                sent.append((client, request, client.send(request, 5)))
        for client, request, number in sent:
            assert client.receive(request, 5, number).producer_id == request.producer_id


def test_an_answer_that_cannot_be_written_closes_the_connection(client, monkeypatch):
    async def too_large(context, request):
        return EndTxnResponse(error_code=1 << 40)

    api = APIS[EndTxnRequest.API_KEY]
    api.load()
    monkeypatch.setattr(api, "handle", too_large)
    client.send(EndTxnRequest("tx", 1, 0, True), 3)
    assert client.is_closed_by_broker()

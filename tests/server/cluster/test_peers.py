"""Brokers among themselves: one shared connection to each, however many ask at once."""

import asyncio
import socket

import pytest

from headrace.clock import SystemClock
from headrace.link.errors import BrokerUnavailable
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.peers import Peers
from headrace.wire.messages.api_versions import ApiVersionsRequest


async def connections(node):
    return len(node.acceptors.connections)


async def test_many_who_ask_at_once_share_one_connection(make_broker):
    broker = make_broker()
    peers = Peers(2, lambda: broker.node.cluster.image, "PLAINTEXT", SystemClock())
    try:
        replies = await asyncio.gather(*(peers.call(1, ApiVersionsRequest(), 0) for _ in range(5)))
        assert all(reply.error_code == 0 for reply in replies)
        assert broker.run(connections) == 1
    finally:
        peers.close()


async def test_who_gives_up_waiting_for_a_connection_harms_no_other(make_broker):
    broker = make_broker()
    peers = Peers(2, lambda: broker.node.cluster.image, "PLAINTEXT", SystemClock())
    try:
        impatient = asyncio.ensure_future(peers.call(1, ApiVersionsRequest(), 0))
        patient = asyncio.ensure_future(peers.call(1, ApiVersionsRequest(), 0))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).error_code == 0
    finally:
        peers.close()


async def test_a_broker_that_is_not_there_is_an_error_for_everybody_who_asks():
    peers = Peers(2, MetadataImage, "PLAINTEXT", SystemClock())
    answers = await asyncio.gather(
        *(peers.call(1, ApiVersionsRequest(), 0) for _ in range(2)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [BrokerUnavailable, BrokerUnavailable]
    with pytest.raises(BrokerUnavailable, match="not alive"):
        await peers.call(1, ApiVersionsRequest(), 0)


async def test_a_connection_may_ask_for_a_receive_buffer(make_broker):
    broker = make_broker()
    peers = Peers(2, lambda: broker.node.cluster.image, "PLAINTEXT", SystemClock())
    connection = await peers.connect(1, receive_buffer=20_000)
    try:
        opened = connection._transport.get_extra_info("socket")
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 40_000, "Linux doubles it"
    finally:
        connection.close()

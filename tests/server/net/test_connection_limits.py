"""How many clients may connect, from where and how quickly: the settings act, also when they change on a running broker."""

import contextlib
import socket

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.identity import StartError
from headrace.testing.clock import MovableClock
from headrace.testing.wire import WireClient, frame
from headrace.wire.messages.api_versions import ApiVersionsRequest
from tests.server.api import quota_client
from tests.waiting import until

PATIENCE = 60


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(source, 0))


def is_served(peer):
    """Whether the broker answers, rather than closing the connection."""
    try:
        peer.sendall(frame(ApiVersionsRequest("a", "1"), 3))
        return peer.recv(1) != b""
    except ConnectionError:
        return False


@pytest.fixture
def peers():
    """Connections that stay open until the test ends."""
    with contextlib.ExitStack() as stack:

        def opened(*arguments):
            return stack.enter_context(connect(*arguments))

        yield opened


def alter(bootstrap, name, value):
    resource = ConfigResource(
        ResourceType.BROKER,
        "1",
        incremental_configs=[ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)],
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(PATIENCE)


def test_one_address_has_its_limit_and_another_its_own(make_broker, peers):
    broker = make_broker({"max.connections.per.ip": 1, "max.connections.per.ip.overrides": "127.0.0.2:2"})
    assert is_served(peers(broker.port))
    assert not is_served(peers(broker.port))
    assert is_served(peers(broker.port, "127.0.0.2"))
    assert is_served(peers(broker.port, "127.0.0.2"))
    assert not is_served(peers(broker.port, "127.0.0.2"))


def test_an_address_may_be_given_by_its_host_name(make_broker, peers):
    broker = make_broker({"max.connections.per.ip.overrides": "localhost:1"})
    assert is_served(peers(broker.port))
    assert not is_served(peers(broker.port))
    assert is_served(peers(broker.port, "127.0.0.2"))


def test_a_host_name_nobody_knows_and_a_text_that_is_no_limit_are_refused(make_broker):
    with pytest.raises(StartError, match=r"the host name nowhere\.invalid cannot be resolved"):
        make_broker({"max.connections.per.ip.overrides": "nowhere.invalid:3"})
    with pytest.raises(ConfigError, match=r"'10\.0\.0\.1' is not host:count"):
        BrokerConfig.load({"max.connections.per.ip.overrides": "10.0.0.1"})


def test_a_host_name_that_the_cluster_was_given_keeps_no_broker_from_starting(make_broker, peers, caplog):
    broker = make_broker({})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = ConfigEntry(
        "max.connections.per.ip.overrides", "nowhere.invalid:3", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[wanted])
    admin.incremental_alter_configs([resource])[resource].result(60)
    broker.stop()
    broker.start()
    assert is_served(peers(broker.port))
    until(lambda: "the host name nowhere.invalid cannot be resolved" in caplog.text)


def test_a_connection_that_ends_makes_room_for_another(make_broker, peers):
    broker = make_broker({"max.connections.per.ip": 1})
    first = peers(broker.port)
    assert is_served(first)
    first.close()
    until(lambda: is_served(peers(broker.port)))


def test_a_limit_that_is_changed_on_a_running_broker_holds_from_then_on(make_broker, peers):
    broker = make_broker()
    kept = peers(broker.port, "127.0.0.2")
    assert is_served(kept)
    alter(broker.bootstrap, "max.connections.per.ip.overrides", "127.0.0.2:1")
    until(lambda: not is_served(peers(broker.port, "127.0.0.2")))
    assert is_served(kept)
    alter(broker.bootstrap, "max.connections.per.ip.overrides", "127.0.0.2:100")
    until(lambda: is_served(peers(broker.port, "127.0.0.2")))


TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
}


def test_a_listener_has_a_limit_of_its_own(make_broker, peers):
    broker = make_broker({**TWO_LISTENERS, "listener.name.outside.max.connections": 1})
    outside = broker.node.addresses["OUTSIDE"][1]
    assert is_served(peers(outside))
    assert not is_served(peers(outside))
    assert is_served(peers(broker.port))


def test_clients_that_fill_the_broker_do_not_keep_other_brokers_out(make_broker, peers):
    broker = make_broker({**TWO_LISTENERS, "max.connections": 1})
    outside = broker.node.addresses["OUTSIDE"][1]
    assert is_served(peers(outside))
    assert not is_served(peers(outside))
    assert is_served(peers(broker.port)), "the listener that brokers use among themselves"


async def waiting(node):
    return sum(connection.muted for connection in node.acceptors.connections)


def test_connections_that_open_too_quickly_wait_for_their_turn(make_broker, peers):
    broker = make_broker({"max.connection.creation.rate": 1})
    opened = [peers(broker.port) for _ in range(40)]
    for peer in opened:
        peer.sendall(frame(ApiVersionsRequest("a", "1"), 3))
    assert opened[0].recv(1) != b""
    assert broker.run(waiting) > 0, "the last of them would have its turn after 39 seconds"
    broker.clock.advance(60)
    for peer in opened[1:]:
        assert peer.recv(1) != b""
    assert broker.run(waiting) == 0


class StoppedClock(MovableClock):
    """Timers run, but no time passes: however long connecting takes, it does not become anybody's turn."""

    def monotonic(self):
        return self._ahead


def test_no_more_connections_wait_than_the_backlog_has_room_for(make_broker, peers):
    settings = {"max.connection.creation.rate": 1, "socket.listen.backlog.size": 5}
    broker = make_broker(settings, clock=StoppedClock())
    opened = [peers(broker.port) for _ in range(20)]
    assert opened[-1].recv(1) == b"", "refused"
    assert broker.run(open_connections) == 5


def set_connection_quota(broker, address, rate):
    quota_client.set_quota(broker.bootstrap, [("ip", address)], connection_creation_rate=rate)

    async def in_force(node):
        return node.admission.addresses.limits.of(address or "127.9.9.9") == rate

    until(lambda: broker.run(in_force))


FIVE_AT_ONCE = {"quota.window.num": 2, "quota.window.size.seconds": 5}
"""What a quota of one connection a second comes to while no time passes."""


def test_an_address_that_connects_too_often_is_not_served(make_broker, peers):
    broker = make_broker(FIVE_AT_ONCE, clock=StoppedClock())
    set_connection_quota(broker, "127.0.0.2", 1)
    opened = [peers(broker.port, "127.0.0.2") for _ in range(7)]
    assert [is_served(peer) for peer in opened] == [True] * 5 + [False] * 2
    assert is_served(peers(broker.port)), "another address"
    until(lambda: broker.run(open_connections) == 6)
    broker.clock.advance(60)
    assert is_served(peers(broker.port, "127.0.0.2"))


def test_a_default_quota_holds_for_each_address_and_can_be_lifted(make_broker, peers):
    broker = make_broker({**TWO_LISTENERS, **FIVE_AT_ONCE}, clock=StoppedClock())
    outside = broker.node.addresses["OUTSIDE"][1]
    set_connection_quota(broker, None, 1)
    for source in ("127.0.0.2", "127.0.0.3"):
        served = [is_served(peers(outside, source)) for _ in range(6)]
        assert served == [True] * 5 + [False]
    assert is_served(peers(broker.port, "127.0.0.2")), "the listener that brokers use among themselves"
    set_connection_quota(broker, None, None)
    assert is_served(peers(outside, "127.0.0.2"))


def test_a_connection_that_is_kept_waiting_may_leave(make_broker, peers):
    broker = make_broker(FIVE_AT_ONCE, clock=StoppedClock())
    set_connection_quota(broker, "127.0.0.2", 1)
    for _ in range(6):
        peers(broker.port, "127.0.0.2").close()
    until(lambda: broker.run(open_connections) == 0)


def test_idle_connections_are_closed(make_broker, peers):
    broker = make_broker({"connections.max.idle.ms": 60_000})
    idle = peers(broker.port)
    assert is_served(idle)
    broker.clock.advance(75)
    until(lambda: broker.run(open_connections) == 0)


async def open_connections(node):
    return len(node.acceptors.connections)


async def sizes(node):
    (connection,) = node.acceptors.connections
    accepted = connection.transport.get_extra_info("socket")
    return [accepted.getsockopt(socket.SOL_SOCKET, each) for each in (socket.SO_SNDBUF, socket.SO_RCVBUF)]


async def backlog(node):
    """Of a listening socket `tcpi_sacked` is how many connections may wait to be accepted."""
    (server,) = node.acceptors._servers
    info = server.sockets[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
    return int.from_bytes(info[28:32], "little")


def test_socket_buffers_and_the_backlog_have_the_sizes_asked_for(make_broker):
    settings = {
        "socket.send.buffer.bytes": 30_000,
        "socket.receive.buffer.bytes": 40_000,
        "socket.listen.backlog.size": 17,
    }
    broker = make_broker(settings)
    with WireClient(broker.bootstrap) as client:
        assert client.call(ApiVersionsRequest("a", "1"), 3).error_code == 0
        assert broker.run(sizes) == [60_000, 80_000], "Linux doubles them for its own needs"
    assert broker.run(backlog) == 17

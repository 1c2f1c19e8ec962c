"""The simulated parts keep the contracts of the real ones, and misbehave where those may."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

import pytest

from headrace.server.cluster.store import Store
from tests.server.cluster import test_store_contract as contract
from tests.simulation.ensemble import Ensemble
from tests.simulation.network import Network
from tests.simulation.process import Host, Process
from tests.simulation.threads import SimulatedLock, Threads, pass_time
from tests.simulation.world import World

CONTRACT = [
    function
    for name, function in vars(contract).items()
    if name.startswith("test_") and list(inspect.signature(function).parameters) == ["connect"]
]


def host(world: World, name: str = "host", network: Network | None = None) -> Host:
    network = network or Network(world)
    return Host(world, name, f"10.0.0.{len(network.hosts) + 1}", network)


def finish(process: Process, work: Awaitable[None]) -> None:
    task = process.start(work)  # type: ignore[arg-type]
    process.world.run(task.done, 600.0)
    task.result()


@pytest.mark.parametrize("function", CONTRACT, ids=lambda each: each.__name__)
def test_the_simulated_store_keeps_the_contract(function: Callable[..., Awaitable[None]]) -> None:
    world = World(1)
    one = host(world)
    ensemble = Ensemble(world, one.network)
    process = one.process("broker")

    async def connect() -> Store:
        store = ensemble.connect(process, 20.0)
        while not store.session_id:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return store

    finish(process, function(connect))
    assert not world.troubles


@pytest.mark.parametrize("seed", range(10))
def test_a_disk_keeps_what_was_synced_and_any_part_of_the_rest(seed: int) -> None:
    world = World(seed)
    machine = host(world)
    files = machine.process("broker").files
    handle = files.open("/data/log", writable=True, create=True)
    handle.write_at(b"synced", 0)
    handle.sync()
    files.sync_directory("/data")
    handle.write_at(b"not synced", 6)
    files.write_whole("/data/forgotten", b"x", sync=False)
    machine.lose_power()
    machine.boot()
    files = machine.process("broker").files
    found = files.read_whole("/data/log")
    assert found.startswith(b"synced")
    assert len(found) <= 16


def test_bytes_of_a_connection_arrive_in_order_whatever_happens_to_the_link() -> None:
    world = World(7)
    network = Network(world)
    here, there = host(world, "here", network), host(world, "there", network)
    received = bytearray()

    class Sink(asyncio.BufferedProtocol):
        def get_buffer(self, sizehint: int) -> memoryview:
            self.buffer = bytearray(7)
            return memoryview(self.buffer)

        def buffer_updated(self, nbytes: int) -> None:
            received.extend(self.buffer[:nbytes])

    server = there.process("server")
    network.listen(server, network.bind(there.address, 1), Sink)
    client = here.process("client")

    async def send() -> None:
        transport, _ = await network.connect(client, there.address, 1, Sink)
        for number in range(100):
            transport.write(b"%03d" % number)
            if number % 20 == 5:
                network.cut(("here", "there"))
            if number % 20 == 15:
                network.heal()
            await asyncio.sleep(0.0003)
        network.heal()
        await asyncio.sleep(1.0)

    finish(client, send())
    assert received == b"".join(b"%03d" % number for number in range(100))


def test_threads_meet_between_accesses_to_the_disk_and_wait_for_each_others_locks() -> None:
    orders = set()
    for seed in range(20):
        world = World(seed)
        process = host(world).process("broker")
        pool, lock = Threads(process, 2), SimulatedLock()
        seen: list[str] = []

        def work(name: str, lock: SimulatedLock = lock, seen: list[str] = seen) -> None:
            pass_time()
            with lock:
                seen.append(name)
                pass_time()
                seen.append(name)

        jobs = [pool.submit(work, name) for name in "ab"]
        world.run(lambda jobs=jobs: all(job.done() for job in jobs), 1.0)  # type: ignore[misc]
        assert seen in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
        orders.add(seen[0])
    assert orders == {"a", "b"}


def test_a_killed_process_runs_nothing_more() -> None:
    world = World(1)
    machine = host(world)
    process = machine.process("victim")
    ran: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1.0)
        finally:
            ran.append("finally")

    process.start(work())
    world.after(0.5, process.kill)
    world.run(lambda: False, 5.0)
    assert ran == []

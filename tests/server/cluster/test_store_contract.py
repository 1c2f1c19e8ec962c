"""What the code above the store relies on, checked for every implementation of the store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster.embedded import EmbeddedStore
from headrace.server.cluster.remote import RemoteStore
from headrace.server.cluster.store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionState,
    SetData,
    Store,
    ensure,
)
from headrace.server.cluster.store_server import StoreServer
from headrace.server.cluster.zookeeper import ZooKeeperStore
from headrace.testing.zookeeper import ZooKeeperServer

Connect = Callable[[], Awaitable[Store]]
_chroots = itertools.count()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(params=["embedded", "remote", "zookeeper"])
async def connect(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Connect]:
    """Sessions on one store, as many as wanted."""
    opened: list[Store] = []
    if request.param == "embedded":
        embedded = await EmbeddedStore.open(tmp_path / "store.db")

        async def begin() -> Store:
            opened.append(embedded.connect())
            return opened[-1]

        yield begin
        await embedded.close()
        return
    if request.param == "remote":
        embedded = await EmbeddedStore.open(tmp_path / "store.db")
        server = StoreServer(embedded, tmp_path / "s", 20.0, SystemClock())
        await server.start()

        async def dial() -> Store:
            opened.append(await RemoteStore.open(tmp_path / "s", 20.0, SystemClock()))
            return opened[-1]

        yield dial
        for store in opened:
            await store.close()
        await server.stop()
        await embedded.close()
        return
    hosts = f"{request.getfixturevalue('zookeeper').connect_string}/contract-{next(_chroots)}"

    async def reach() -> Store:
        opened.append(await ZooKeeperStore.open(hosts, 6.0, 20.0, SystemClock()))
        return opened[-1]

    yield reach
    for store in opened:
        await store.close()


async def data_of(store: Store, path: str) -> bytes:
    found = await store.get(path)
    assert found is not None
    return found[0]


async def test_a_transaction_happens_whole_or_not_at_all(connect: Connect) -> None:
    store = await connect()
    await store.commit([Create("/a"), Create("/a/b", b"1")])
    with pytest.raises(BadVersionError) as caught:
        await store.commit([Create("/a/c"), SetData("/a/b", b"2"), Check("/a/b", 7)])
    assert (caught.value.index, caught.value.path) == (2, "/a/b")
    assert await store.children("/a") == ["b"]
    assert await data_of(store, "/a/b") == b"1"


async def test_versions_and_the_shape_of_the_tree_are_guarded(connect: Connect) -> None:
    store = await connect()
    with pytest.raises(NoNodeError):
        await store.commit([Create("/x/y")])
    await store.commit([Create("/x"), Create("/x/y")])
    with pytest.raises(NodeExistsError):
        await store.commit([Create("/x")])
    with pytest.raises(NotEmptyError):
        await store.commit([Delete("/x")])
    with pytest.raises(NoNodeError):
        await store.commit([SetData("/z", b"")])
    (stat,) = await store.commit([SetData("/x/y", b"one", 0)])
    assert stat is not None
    assert stat.version == 1
    with pytest.raises(BadVersionError):
        await store.commit([SetData("/x/y", b"two", 0)])
    await store.commit([Delete("/x/y", 1), Delete("/x")])
    assert await store.children("/x") == []
    assert await store.get("/x") is None


async def test_a_transaction_sees_its_own_earlier_operations(connect: Connect) -> None:
    store = await connect()
    results = await store.commit(
        [Create("/a"), SetData("/a", b"2", 0), Check("/a", 1), Delete("/a"), Create("/a", b"3")]
    )
    assert results[1] is not None
    assert results[1].version == 1
    assert await data_of(store, "/a") == b"3"
    await ensure(store, ["/a", "/a/b"])
    assert await store.children("/a") == ["b"]


async def test_what_one_session_writes_another_reads(connect: Connect) -> None:
    first, second = await connect(), await connect()
    await first.commit([Create("/shared", b"hello")])
    seen = asyncio.Event()
    while await second.get("/shared", seen.set) is None:
        await asyncio.wait_for(seen.wait(), 20)
    assert await data_of(second, "/shared") == b"hello"


async def test_a_watch_is_told_once_of_the_next_change_of_a_node(connect: Connect) -> None:
    first, second = await connect(), await connect()
    fired: list[str] = []
    happened = asyncio.Event()

    def note(what: str) -> Callable[[], None]:
        return lambda: (fired.append(what), happened.set())[1]

    for op, what in ((Create("/w"), "made"), (SetData("/w", b"x"), "changed"), (Delete("/w"), "gone")):
        happened.clear()
        await first.get("/w", note(what))
        await second.commit([op])
        await asyncio.wait_for(happened.wait(), 20)
    await second.commit([Create("/w")])
    await first.get("/w")
    assert fired == ["made", "changed", "gone"]


async def test_a_watch_on_children_is_told_of_comings_and_goings(connect: Connect) -> None:
    first, second = await connect(), await connect()
    await first.commit([Create("/p")])
    for op in (Create("/p/a"), Delete("/p/a")):
        changed = asyncio.Event()
        await first.children("/p", changed.set)
        await second.commit([op])
        await asyncio.wait_for(changed.wait(), 20)


async def test_ephemeral_nodes_go_with_their_session_and_say_whose_they_are(connect: Connect) -> None:
    first, second = await connect(), await connect()
    (stat,) = await first.commit([Create("/mine", b"", ephemeral=True)])
    assert stat is not None
    assert stat.owner == first.session_id
    gone = asyncio.Event()
    found = await second.get("/mine", gone.set)
    assert found is not None
    assert found[1] == stat
    await first.close()
    await asyncio.wait_for(gone.wait(), 20)
    assert await second.get("/mine") is None
    (again,) = await second.commit([Create("/mine", b"", ephemeral=True)])
    assert again is not None
    assert again.created > stat.created


async def test_many_writers_at_once_each_get_their_own_answer(connect: Connect) -> None:
    store = await connect()
    await store.commit([Create("/n", b"0")])

    async def add() -> None:
        while True:
            found = await store.get("/n")
            assert found is not None
            data, stat = found
            try:
                await store.commit([SetData("/n", str(int(data) + 1).encode(), stat.version)])
                return
            except BadVersionError:
                continue

    await asyncio.gather(*(add() for _ in range(8)))
    found = await store.get("/n")
    assert found is not None
    assert (found[0], found[1].version) == (b"8", 8)


async def test_a_closed_session_says_so(connect: Connect) -> None:
    store = await connect()
    states: list[SessionState] = []
    store.on_session(states.append)
    await store.close()
    assert states == [SessionState.CLOSED]

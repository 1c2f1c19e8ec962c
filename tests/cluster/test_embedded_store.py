import asyncio
import sqlite3
from pathlib import Path

import pytest

from headrace.cluster.embedded import EmbeddedStore
from headrace.cluster.store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    SessionState,
    SetData,
    StoreError,
    UnavailableError,
    ensure,
)


async def test_a_transaction_happens_whole_or_not_at_all(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "s.db")
    session = store.connect()
    await session.commit([Create("/a"), Create("/a/b", b"1")])
    with pytest.raises(BadVersionError) as caught:
        await session.commit([Create("/a/c"), SetData("/a/b", b"2"), Check("/a/b", 7)])
    assert (caught.value.index, caught.value.path) == (2, "/a/b")
    assert await session.children("/a") == ["b"]
    assert await session.get("/a/b") is not None
    found = await session.get("/a/b")
    assert found is not None
    assert found[0] == b"1"
    await store.close()


async def test_versions_and_the_shape_of_the_tree_are_guarded() -> None:
    store = await EmbeddedStore.open(None)
    session = store.connect()
    with pytest.raises(NoNodeError):
        await session.commit([Create("/x/y")])
    await session.commit([Create("/x"), Create("/x/y")])
    with pytest.raises(NodeExistsError):
        await session.commit([Create("/x")])
    with pytest.raises(NotEmptyError):
        await session.commit([Delete("/x")])
    with pytest.raises(NoNodeError):
        await session.commit([SetData("/z", b"")])
    (stat,) = await session.commit([SetData("/x/y", b"one", 0)])
    assert stat is not None
    assert stat.version == 1
    with pytest.raises(BadVersionError):
        await session.commit([SetData("/x/y", b"two", 0)])
    await session.commit([Delete("/x/y", 1), Delete("/x")])
    assert await session.children("/") == []
    await store.close()


async def test_a_transaction_sees_its_own_earlier_operations() -> None:
    store = await EmbeddedStore.open(None)
    session = store.connect()
    results = await session.commit(
        [Create("/a"), SetData("/a", b"2", 0), Check("/a", 1), Delete("/a"), Create("/a", b"3")]
    )
    assert [None if stat is None else stat.version for stat in results] == [0, 1, None, None, 0]
    await ensure(session, ["/a", "/a/b"])
    assert await session.children("/a") == ["b"]
    await store.close()


async def test_what_was_answered_is_there_after_a_restart_and_ephemerals_are_not(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "s.db")
    session = store.connect()
    (stat,) = await session.commit([Create("/kept", b"1")])
    (mayfly,) = await session.commit([Create("/kept-not", b"", ephemeral=True)])
    await session.commit([SetData("/kept", b"2")])
    assert stat is not None
    assert mayfly is not None
    # No close: the file is read as a crash would leave it.
    again = await EmbeddedStore.open(_copy(tmp_path))
    reader = again.connect()
    found = await reader.get("/kept")
    assert found is not None
    assert (found[0], found[1].version, found[1].created) == (b"2", 1, stat.created)
    assert await reader.get("/kept-not") is None
    (later,) = await reader.commit([Create("/kept-not", b"", ephemeral=True)])
    assert later is not None
    assert later.created > mayfly.created
    await again.close()
    await store.close()


def _copy(directory: Path) -> Path:
    """The database and its write-ahead log as they are on disk now."""
    target = directory / "after"
    target.mkdir()
    for file in directory.glob("s.db*"):
        (target / file.name).write_bytes(file.read_bytes())
    return target / "s.db"


async def test_a_watch_is_told_once_of_the_next_change() -> None:
    store = await EmbeddedStore.open(None)
    session, other = store.connect(), store.connect()
    seen: list[str] = []
    assert await session.get("/a", lambda: seen.append("node")) is None
    assert await session.children("/", lambda: seen.append("children")) == []
    await other.commit([Create("/a")])
    await other.commit([SetData("/a", b"x")])
    await asyncio.sleep(0)
    assert sorted(seen) == ["children", "node"]
    await session.get("/a", lambda: seen.append("deleted"))
    await other.commit([Delete("/a")])
    await asyncio.sleep(0)
    assert seen[2:] == ["deleted"]
    await store.close()


async def test_a_change_is_visible_when_its_watch_is_told() -> None:
    store = await EmbeddedStore.open(None)
    session = store.connect()
    told = asyncio.Event()
    await session.get("/a", told.set)
    await session.commit([Create("/a", b"now")])
    await told.wait()
    found = await session.get("/a")
    assert found is not None
    assert found[0] == b"now"
    await store.close()


async def test_ephemeral_nodes_go_with_their_session() -> None:
    store = await EmbeddedStore.open(None)
    session, other = store.connect(), store.connect()
    await session.commit([Create("/mine", b"", ephemeral=True), Create("/ours")])
    gone = asyncio.Event()
    await other.get("/mine", gone.set)
    await session.close()
    await gone.wait()
    assert await other.children("/") == ["ours"]
    with pytest.raises(SessionExpiredError):
        await session.get("/ours")
    await store.close()


async def test_an_expired_session_is_told_and_goes_on_as_a_new_one() -> None:
    store = await EmbeddedStore.open(None)
    session = store.connect()
    states: list[SessionState] = []
    session.on_session(states.append)
    await session.commit([Create("/mine", b"", ephemeral=True)])
    before = session.session_id
    await session.expire()
    assert states == [SessionState.EXPIRED, SessionState.CONNECTED]
    assert session.session_id > before
    assert await session.get("/mine") is None
    await session.commit([Create("/mine", b"", ephemeral=True)])
    await store.close()


async def test_many_writers_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    store = await EmbeddedStore.open(tmp_path / "s.db")
    session = store.connect()
    await session.commit([Create("/n", b"0")])

    async def add() -> int:
        tries = 0
        while True:
            tries += 1
            found = await session.get("/n")
            assert found is not None
            data, stat = found
            try:
                await session.commit([SetData("/n", str(int(data) + 1).encode(), stat.version)])
                return tries
            except BadVersionError:
                continue

    await asyncio.gather(*(add() for _ in range(20)))
    found = await session.get("/n")
    assert found is not None
    assert (found[0], found[1].version) == (b"20", 20)
    await store.close()


async def test_a_failed_write_is_answered_as_such_and_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await EmbeddedStore.open(tmp_path / "s.db")
    session = store.connect()
    await session.commit([Create("/a")])

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "_save", full)
    with pytest.raises(UnavailableError, match="free or repair the disk"):
        await session.commit([Create("/b")])
    monkeypatch.undo()
    with pytest.raises(UnavailableError):
        await session.commit([Create("/c")])
    assert await session.children("/") == ["a"]
    await store.close()


async def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"not a database, whatever it says" * 100)
    with pytest.raises(StoreError, match="Restore the file from a backup"):
        await EmbeddedStore.open(tmp_path / "s.db")

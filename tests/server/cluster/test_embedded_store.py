import asyncio
import sqlite3
from pathlib import Path

import pytest

from headrace.server.cluster.embedded import EmbeddedStore
from headrace.server.cluster.store import (
    Create,
    SessionState,
    SetData,
    StoreError,
    UnavailableError,
)


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


async def test_a_change_is_visible_when_its_watch_is_told() -> None:
    store = await EmbeddedStore.open(None)
    session = store.connect()
    changed = asyncio.Event()
    await session.get("/a", changed.set)
    await session.commit([Create("/a", b"now")])
    await changed.wait()
    found = await session.get("/a")
    assert found is not None
    assert found[0] == b"now"
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


async def test_a_failed_write_is_answered_as_such_and_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await EmbeddedStore.open(tmp_path / "s.db")
    session = store.connect()
    await session.commit([Create("/a")])

    def failing(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store, "_save", failing)
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


async def test_a_full_disk_refuses_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = await EmbeddedStore.open(tmp_path / "s.db")
    session = store.connect()
    await session.commit([Create("/kept", b"1")])
    assert store._database is not None
    (pages,) = store._database.execute("PRAGMA page_count").fetchone()
    store._database.execute(f"PRAGMA max_page_count={pages}")  # SQLite then fails as it does on a full disk
    for _ in range(2):
        with pytest.raises(UnavailableError, match="No room is left on the disk"):
            await session.commit([Create("/large", b"x" * 100_000)])
    assert caplog.text.count("No room is left on the disk") == 1
    assert await session.get("/large") is None
    store._database.execute("PRAGMA max_page_count=1000000")
    await session.commit([Create("/large", b"x" * 100_000)])
    await store.close()
    again = await EmbeddedStore.open(tmp_path / "s.db")
    found = await again.connect().get("/large")
    assert found is not None
    assert len(found[0]) == 100_000
    await again.close()

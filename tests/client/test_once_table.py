"""Every cell of the table of `once` in docs/delivery.md, tried against real Redis and MariaDB servers."""

from __future__ import annotations

import importlib.util
import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa

from headrace.client import Record, TryLater
from headrace.client.once import (
    Once,
    SqlStore,
    StoreUnavailable,
    from_fields,
    from_header,
    from_key,
    from_position,
)
from headrace.client.once.ids import IdOf

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "docs" / "delivery.md"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rows = load(HERE / "once_rows.py")


def documented() -> Iterator[tuple[str, str, str]]:
    """(row, column, outcome) for each cell of the table whose first heading is "once"."""
    lines = iter(DOCUMENT.read_text().splitlines())
    heading = next(line for line in lines if line.startswith("| once |"))
    columns = [cell.strip() for cell in heading.strip("|").split("|")][1:]
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for column, cell in zip(columns, cells, strict=True):
            yield name.strip("`"), column, cell


class Bench:
    """One row of the table with servers of its own."""

    def __init__(self, row: str, folder: Path, redis_server: Any, mariadb: Any) -> None:
        self.row = row
        self.folder = folder
        self.redis_server = redis_server
        # The database is reached through a link, which can be taken away.
        self.link = redis_server.home / "database"
        self.link.symlink_to(mariadb.socket)
        self.url = mariadb.new_database().replace(str(mariadb.socket), str(self.link))
        self.database = sa.make_url(self.url).database
        self.made = rows.ROWS[row](folder, str(redis_server.socket), self.url, lambda: None)

    def deliver(self, identity: str = "1", offset: int = 7) -> None:
        """As a runner would: what must wait comes again."""
        record = rows.delivery(identity, offset)
        deadline = time.monotonic() + 20
        while True:
            try:
                self.made.handler(record)
                return
            except StoreUnavailable:
                raise
            except TryLater:
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def outcome(self) -> str:
        return {0: "not at all", 1: "once", 2: "twice"}[self.made.effects()]


def delivered_again(bench: Bench) -> str:
    bench.deliver()
    bench.deliver()
    return bench.outcome()


def sent_twice(bench: Bench) -> str:
    bench.deliver(offset=7)
    bench.deliver(offset=8)
    return bench.outcome()


def killed_after_the_effect(bench: Bench) -> str:
    arguments = [bench.row, str(bench.folder), str(bench.redis_server.socket), bench.url, "1", "7"]
    child = subprocess.run([sys.executable, HERE / "once_rows.py", *arguments], check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL
    bench.deliver()
    return bench.outcome()


def two_at_once(bench: Bench) -> str:
    barrier = threading.Barrier(4)
    bench.made.after_effect = lambda: time.sleep(0.05)
    failures: list[BaseException] = []

    def consumer() -> None:
        barrier.wait()
        try:
            bench.deliver()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=consumer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A deadlock in the database is answered with "wait"; then the record comes again.
    assert all(isinstance(failure, StoreUnavailable) for failure in failures)
    bench.deliver()
    return bench.outcome()


def redis_away(bench: Bench) -> str:
    bench.redis_server.kill()
    waits = expect_waiting(bench)
    bench.redis_server.start()
    return waits_and_then_happens_once(bench) if waits else bench.outcome()


def redis_forgets(bench: Bench) -> str:
    bench.deliver()
    bench.redis_server.kill()
    bench.redis_server.start()
    bench.deliver()
    return bench.outcome()


def database_away(bench: Bench) -> str:
    bench.link.rename(bench.link.with_suffix(".away"))
    bench.made.engine.dispose()
    waits = expect_waiting(bench)
    bench.link.with_suffix(".away").rename(bench.link)
    return waits_and_then_happens_once(bench) if waits else bench.outcome()


def database_forgets(bench: Bench) -> str:
    bench.deliver()
    with bench.made.engine.begin() as connection:
        for table in sa.inspect(connection).get_table_names():
            connection.execute(sa.text(f"DELETE FROM {table}"))
    bench.deliver()
    return bench.outcome()


def expect_waiting(bench: Bench) -> bool:
    try:
        bench.deliver()
    except (StoreUnavailable, sa.exc.OperationalError):
        return True
    bench.deliver()
    return False


def waits_and_then_happens_once(bench: Bench) -> str:
    assert bench.made.effects() == 0
    bench.deliver()
    assert bench.outcome() == "once"
    return "waits"


COLUMNS: dict[str, Callable[[Bench], str]] = {
    "delivered again": delivered_again,
    "sent twice": sent_twice,
    "killed after the effect": killed_after_the_effect,
    "two at once": two_at_once,
    "Redis away": redis_away,
    "Redis forgets": redis_forgets,
    "database away": database_away,
    "database forgets": database_forgets,
}


def test_the_document_has_every_row_and_column_that_is_tried() -> None:
    cells = list(documented())
    assert {row for row, _, _ in cells} == set(rows.ROWS)
    assert {column for _, column, _ in cells} == set(COLUMNS)
    assert {outcome for _, _, outcome in cells} <= {"once", "twice", "waits", "—"}


@pytest.mark.parametrize(("row", "column", "outcome"), [cell for cell in documented() if cell[2] != "—"])
def test_a_cell(row: str, column: str, outcome: str, tmp_path: Path, redis_server: Any, mariadb: Any) -> None:
    assert COLUMNS[column](Bench(row, tmp_path, redis_server, mariadb)) == outcome


IDS: dict[str, IdOf] = {
    '`from_header("headrace.id")` (set by the outbox)': from_header(),
    "`from_key()`, when each key comes once": from_key(),
    '`from_fields("transfer_id", "account_id")`': from_fields("transfer_id", "account_id"),
    "`from_position()`: topic, partition, offset": from_position(),
}


def documented_ids() -> list[tuple[str, str, str]]:
    """(id, redelivery recognised, sent twice recognised)"""
    lines = DOCUMENT.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| id |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]  # type: ignore[misc]


def test_the_document_has_every_kind_of_id() -> None:
    assert [name for name, _, _ in documented_ids()] == list(IDS)


@pytest.mark.parametrize(("name", "redelivery", "sent_twice"), documented_ids())
def test_what_each_id_recognises(name: str, redelivery: str, sent_twice: str, tmp_path: Path) -> None:
    store = SqlStore(sa.create_engine(f"sqlite:///{tmp_path / 'store.db'}"))
    effects: list[int] = []
    handle = Once("test", store, id=IDS[name])(lambda record: effects.append(record.offset))

    def transfer(offset: int, number: int = 1) -> Record[bytes, object]:
        return Record(
            "transfers",
            0,
            offset,
            b"key-%d" % number,
            b'{"transfer_id": %d, "account_id": 7}' % number,
            (("headrace.id", b"id-%d" % number),),
            value_deserializer=json.loads,
        )

    recognised = {True: "yes", False: "no"}
    handle(transfer(3))
    handle(transfer(3))
    assert recognised[effects == [3]] == redelivery
    handle(transfer(4))
    assert recognised[effects == [3]] == sent_twice
    handle(transfer(5, number=2))
    assert effects[-1] == 5  # another transfer is another effect


def test_rows_marked_with_a_dash_do_not_use_that_server() -> None:
    uses_redis = {"Once, RedisStore", "Once, LayeredStore"}
    for row, column, outcome in documented():
        if column.startswith("Redis"):
            assert (outcome == "—") == (row not in uses_redis)
        if column.startswith("database"):
            assert (outcome == "—") == (row == "Once, RedisStore")

"""What `once` does besides the table: ids, failures of handlers, leases, the choice at a crash, dialects."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy.dialects import mysql, postgresql, sqlite

from headrace.client import ConfigError, MissingExtra, Record, Reject, Runner, TopicPartition, serializers
from headrace.client.once import (
    AlreadyRunning,
    Claim,
    LayeredStore,
    Once,
    RedisStore,
    SqlOnce,
    SqlStore,
    Store,
    StoreUnavailable,
    from_fields,
    from_header,
    from_key,
    from_position,
    update_if,
    upsert,
)
from headrace.client.once.ids import MAX_BYTES, fitted
from headrace.client.once.tables import insert_or_ignore, insert_or_ignore_statement, now_millis


def record(identity: str = "a", offset: int = 0, **more: Any) -> Record:
    return Record("t", 0, offset, headers=(("headrace.id", identity.encode()),), **more)


@pytest.fixture(params=["sqlite", "mariadb"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> sa.Engine:
    if request.param == "sqlite":
        return sa.create_engine(f"sqlite:///{tmp_path / 'test.db'}")
    return sa.create_engine(request.getfixturevalue("mariadb").new_database())


@pytest.fixture(params=["redis", "sql", "layered"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    sql = SqlStore(sa.create_engine(f"sqlite:///{tmp_path / 'store.db'}"))
    if request.param == "sql":
        return sql
    redis = RedisStore(request.getfixturevalue("redis_server").client())
    return redis if request.param == "redis" else LayeredStore(redis, sql)


def test_a_store_that_is_away_is_told_to_the_log_once_for_all_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = Redis(unix_socket_path=str(tmp_path / "nobody"), retry=Retry(NoBackoff(), 0))
    handle = Once("test", RedisStore(nobody))(lambda _: None)
    for offset in range(3):
        with pytest.raises(StoreUnavailable):
            handle(record(f"r{offset}", offset))
    [line] = [each.getMessage() for each in caplog.records if each.name == "headrace.client.once.store"]
    assert line.startswith("Redis does not answer")
    assert str(tmp_path) in line


def test_ids_come_from_headers_keys_fields_or_the_position() -> None:
    given = Record(
        "t",
        2,
        7,
        key=b"k",
        value=b'{"transfer_id": 1, "account_id": "x"}',
        headers=(("headrace.id", b"h"),),
        value_deserializer=serializers.json().deserialize,
    )
    assert from_header()(given) == b"h"
    assert from_key()(given) == b"k"
    assert from_fields("transfer_id", "account_id")(given) == b'[1,"x"]'
    assert from_position()(given) == b"t-2-7"


def test_several_fields_never_run_together() -> None:
    def of(first: str, second: str) -> bytes:
        value = serializers.json().serialize({"a": first, "b": second})
        return from_fields("a", "b")(
            Record("t", 0, 0, value=value, value_deserializer=serializers.json().deserialize)
        )

    assert len({of("a", "bc"), of("ab", "c"), of("abc", ""), of("a,b", "c"), of('a","b', "c")}) == 5


@pytest.mark.parametrize("id_of", [from_header(), from_key(), from_fields("transfer_id")])
def test_a_record_without_its_id_is_rejected_with_a_sentence(id_of: Any) -> None:
    without = Record("t", 0, 5, value=b"{}", value_deserializer=serializers.json().deserialize)
    with pytest.raises(Reject, match=r"t-0@5 has no"):
        id_of(without)


def test_fields_of_a_value_that_nobody_decoded_are_not_looked_for() -> None:
    with pytest.raises(Reject, match=r"t-0@5 is bytes, .* give a value_deserializer"):
        from_fields("transfer_id")(Record("t", 0, 5, value=b'{"transfer_id": 1}'))


def test_a_long_id_is_kept_as_its_hash() -> None:
    long = b"x" * (MAX_BYTES + 1)
    assert fitted(long).startswith(b"sha256:")
    assert len(fitted(long)) < MAX_BYTES
    assert fitted(long) != fitted(long + b"x")
    assert fitted(b"short") == b"short"


def test_a_handler_that_raises_may_be_tried_again(store: Store) -> None:
    calls: list[int] = []

    @Once("n", store)
    def handle(record: Record) -> str:
        calls.append(len(calls))
        if len(calls) == 1:
            raise OSError("first")
        return "result"

    with pytest.raises(OSError, match="first"):
        handle(record())
    assert handle(record()) == "result"
    assert handle(record()) is None
    assert len(calls) == 2


def test_two_handlers_share_a_store_without_meeting(store: Store) -> None:
    seen: list[str] = []
    billing = Once("billing", store)(lambda record: seen.append("billing"))
    shipping = Once("shipping", store)(lambda record: seen.append("shipping"))
    for handle in (billing, shipping, billing, shipping):
        handle(record())
    assert seen == ["billing", "shipping"]


def test_names_and_ids_never_run_together(store: Store) -> None:
    seen: list[str] = []
    for name, identity in (("a", "b:c"), ("a:b", "c"), ("a%3Ab", "c")):
        Once(name, store)(lambda record, name=name: seen.append(name))(record(identity))
    assert seen == ["a", "a:b", "a%3Ab"]


def test_long_names_stay_apart_in_every_database(engine: sa.Engine) -> None:
    handled: list[str] = []
    for name in ("n" * 300 + "1", "n" * 300 + "2"):
        for _ in range(2):
            Once(name, SqlStore(engine))(lambda record, name=name: handled.append("store" + name[-1]))(
                record()
            )
            SqlOnce(name, engine, id=from_header())(
                lambda record, _, name=name: handled.append("row" + name[-1])
            )(record())
    assert handled == ["store1", "row1", "store2", "row2"]


def test_what_another_is_handling_waits(store: Store) -> None:
    assert store.claim("n", b"a", "busy", 600).state == "ours"
    with pytest.raises(AlreadyRunning) as waiting:
        Once("n", store)(print)(record())
    assert waiting.value.delay is not None
    assert 0 < waiting.value.delay <= 1


def test_what_a_dead_holder_left_is_handled_when_its_lease_has_run_out(store: Store) -> None:
    assert store.claim("n", b"a", "dead", 0.05).state == "ours"
    seen: list[str] = []
    handle = Once("n", store)(lambda record: seen.append("handled"))
    deadline = time.monotonic() + 30
    while not seen and time.monotonic() < deadline:
        try:
            handle(record())
        except AlreadyRunning as still:
            time.sleep(still.delay or 0.01)
    assert seen == ["handled"]


def test_a_holder_that_comes_back_after_its_lease_is_told(store: Store) -> None:
    store.claim("n", b"a", "slow", 0.001)
    while store.claim("n", b"a", "next", 60).state != "ours":
        time.sleep(0.01)
    assert not store.done("n", b"a", "slow")
    assert store.claim("n", b"a", "third", 60).state == "running"
    store.release("n", b"a", "slow")
    assert store.claim("n", b"a", "third", 60).state == "running"
    assert store.done("n", b"a", "next")
    assert store.claim("n", b"a", "third", 60).state == "done"


def test_skip_at_a_crash_leaves_alone_what_somebody_began(store: Store) -> None:
    store.claim("n", b"a", "dead", None)
    handled: list[int] = []
    Once("n", store, on_crash="skip")(lambda record: handled.append(1))(record())
    assert handled == []


def test_skip_at_a_crash_still_tries_again_what_raised(store: Store) -> None:
    calls: list[str] = []
    once = Once("n", store, on_crash="skip")

    @once
    def handle(record: Record) -> None:
        once(lambda record: calls.append("not now"))(record)
        calls.append("call")
        if len(calls) == 1:
            raise OSError

    with pytest.raises(OSError):
        handle(record())
    handle(record())
    handle(record())
    assert calls == ["call", "call"]


async def test_async_handlers_are_guarded_too(store: Store) -> None:
    seen: list[int] = []

    @Once("n", store)
    async def handle(record: Record) -> int:
        await asyncio.sleep(0)
        seen.append(1)
        if len(seen) == 1:
            raise OSError
        return 5

    with pytest.raises(OSError):
        await handle(record())
    assert await handle(record()) == 5
    assert await handle(record()) is None


def test_an_effect_is_marked_when_the_store_comes_back(redis_server: Any) -> None:
    store = RedisStore(redis_server.client())
    effects: list[int] = []
    back = threading.Timer(0.3, redis_server.start)

    @Once("n", store, lease=30)
    def handle(record: Record) -> None:
        effects.append(1)
        if len(effects) == 1:
            redis_server.kill()
            back.start()

    handle(record())
    back.join()
    handle(record())
    assert len(effects) == 1


def test_ids_in_redis_expire(redis_server: Any) -> None:
    client = redis_server.client()
    Once("n", RedisStore(client, expiry=600))(lambda record: None)(record("kept"))
    assert 0 < client.ttl("headrace:once:n:kept") <= 600
    handled: list[int] = []
    handle = Once("n", RedisStore(client, expiry=0.05))(lambda record: handled.append(1))
    handle(record())
    while client.exists("headrace:once:n:a"):
        time.sleep(0.02)
    handle(record())
    assert len(handled) == 2


def test_a_redis_that_is_full_makes_the_record_wait(redis_server: Any) -> None:
    client = redis_server.client()
    client.config_set("maxmemory", "1")
    client.config_set("maxmemory-policy", "noeviction")
    with pytest.raises(StoreUnavailable, match="Redis refuses"):
        Once("n", RedisStore(client))(print)(record())


def test_ids_differ_by_case_and_trailing_blanks_in_every_database(engine: sa.Engine) -> None:
    handled: list[bytes] = []
    by_store = Once("n", SqlStore(engine), id=from_key())(lambda record: handled.append(record.raw_key))
    by_row = SqlOnce("n", engine, id=from_key())(lambda record, _: handled.append(record.raw_key))
    keys = [b"a", b"A", b"a ", b"a\x00", "ä".encode(), "Ä".encode(), b"\xff"]
    for _ in range(2):
        for key in keys:
            by_store(Record("t", 0, 0, key=key))
            by_row(Record("t", 0, 0, key=key))
    assert handled == [key for key in keys for _ in range(2)]


def test_old_ids_can_be_purged(engine: sa.Engine) -> None:
    store, once = SqlStore(engine), SqlOnce("n", engine, id=from_header())
    Once("n", store)(print)(record())
    once(lambda record, connection: None)(record())
    assert (store.purge(3600), once.purge(3600)) == (0, 0)
    while (store.purge(0), once.purge(0)) == (0, 0):
        time.sleep(0.005)
    assert store.claim("n", b"a", "x", 1).state == "ours"


def test_an_effect_in_the_database_is_undone_with_its_id_when_the_handler_raises(engine: sa.Engine) -> None:
    ledger = sa.Table("ledger", sa.MetaData(), sa.Column("entry", sa.Integer, primary_key=True))
    ledger.metadata.create_all(engine)
    calls: list[int] = []

    @SqlOnce("n", engine, id=from_header())
    def handle(record: Record, connection: sa.Connection) -> None:
        connection.execute(ledger.insert())
        calls.append(1)
        if len(calls) == 1:
            raise OSError

    with pytest.raises(OSError):
        handle(record())
    handle(record())
    handle(record())
    with engine.connect() as connection:
        assert len(connection.execute(sa.select(ledger)).all()) == 1
    assert len(calls) == 2


def test_a_mistake_in_the_handlers_sql_is_an_error_and_does_not_wait_for_ever(engine: sa.Engine) -> None:
    @SqlOnce("n", engine, id=from_header())
    def handle(record: Record, connection: sa.Connection) -> None:
        connection.execute(sa.text("SELECT * FROM no_such_table"))

    with pytest.raises(sa.exc.DBAPIError, match="no_such_table"):
        handle(record())


def test_offsets_kept_with_the_effect_say_where_to_go_on(engine: sa.Engine) -> None:
    handled: list[int] = []
    once = SqlOnce("n", engine, offsets=True)
    handle = once(lambda record, connection: handled.append(record.offset))
    for offset in (3, 4, 4, 3, 9):
        handle(Record("t", 1, offset))
    assert handled == [3, 4, 9]
    asked = [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert once.start_offsets(asked) == {TopicPartition("t", 1): 10}


def test_offsets_kept_elsewhere_need_a_runner_that_goes_one_by_one(engine: sa.Engine) -> None:
    handle = SqlOnce("n", engine, offsets=True)(lambda record, connection: None)
    with pytest.raises(ConfigError, match='needs order="partition"'):
        Runner(handle, "127.0.0.1:1", topics="t", group_id="g")
    Runner(handle, "127.0.0.1:1", topics="t", group_id="g", order="partition")


@pytest.fixture
def stock(engine: sa.Engine) -> sa.Table:
    table = sa.Table(
        "stock",
        sa.MetaData(),
        sa.Column("item", sa.String(20), primary_key=True),
        sa.Column("amount", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    table.metadata.create_all(engine)
    return table


def test_upsert_by_version_ignores_what_is_old_or_repeated(engine: sa.Engine, stock: sa.Table) -> None:
    written = []
    for version in (2, 1, 2, 5, 3, 5):
        with engine.begin() as connection:
            values = {"amount": version * 10, "version": version}
            written.append(upsert(connection, stock, {"item": "tea"}, values, version="version"))
    assert written == [True, False, False, True, False, False]
    with engine.connect() as connection:
        assert connection.execute(sa.select(stock)).all() == [("tea", 50, 5)]


def test_upsert_without_a_version_takes_the_last_and_never_hides_a_real_error(
    engine: sa.Engine, stock: sa.Table
) -> None:
    with engine.begin() as connection:
        assert upsert(connection, stock, {"item": "tea"}, {"amount": 1, "version": 0})
        assert upsert(connection, stock, {"item": "tea"}, {"amount": 2, "version": 0})
        assert connection.execute(sa.select(stock.c.amount)).scalar_one() == 2
    with engine.begin() as connection, pytest.raises(sa.exc.IntegrityError):
        upsert(connection, stock, {"item": "milk"}, {"amount": None, "version": 0})


def test_an_update_on_a_condition_happens_once(engine: sa.Engine, stock: sa.Table) -> None:
    with engine.begin() as connection:
        upsert(connection, stock, {"item": "tea"}, {"amount": 5, "version": 0})
        change = ({"item": "tea"}, {"amount": 5}, {"amount": 4})
        assert update_if(connection, stock, *change)
        assert not update_if(connection, stock, *change)


def test_concurrent_upserts_keep_the_highest_version(engine: sa.Engine, stock: sa.Table) -> None:
    def write(version: int) -> None:
        while True:
            try:
                with engine.begin() as connection:
                    values = {"amount": version, "version": version}
                    upsert(connection, stock, {"item": "tea"}, values, version="version")
                return
            except sa.exc.OperationalError:
                continue  # a deadlock: the runner would bring the record again

    threads = [threading.Thread(target=write, args=(version,)) for version in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.connect() as connection:
        assert connection.execute(sa.select(stock)).all() == [("tea", 8, 8)]


@pytest.mark.parametrize(
    ("dialect", "insert", "clock"),
    [
        (sqlite.dialect(), "ON CONFLICT DO NOTHING", "julianday"),
        (mysql.dialect(), "INSERT IGNORE INTO", "UNIX_TIMESTAMP"),
        (postgresql.dialect(), "ON CONFLICT DO NOTHING", "clock_timestamp"),
    ],
)
def test_each_dialect_gets_its_own_sql(dialect: sa.Dialect, insert: str, clock: str) -> None:
    table = sa.Table("x", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    statement = insert_or_ignore_statement(dialect.name, table).values(id=1)
    assert insert in str(statement.compile(dialect=dialect))
    assert clock in str(sa.select(now_millis()).compile(dialect=dialect))


def test_the_databases_clock_is_the_real_time(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert connection.execute(sa.select(now_millis())).scalar_one() == pytest.approx(
            time.time() * 1000, abs=60_000
        )


def test_insert_or_ignore_says_whether_it_inserted(engine: sa.Engine) -> None:
    table = sa.Table("y", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    table.metadata.create_all(engine)
    with engine.begin() as connection:
        assert [insert_or_ignore(connection, table, {"id": 1}) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda engine: SqlOnce("n", engine), "needs an id="),
        (lambda engine: Once("n", SqlStore(engine), on_crash="pray"), '"repeat" or "skip"'),
        (lambda engine: Once("n", SqlStore(engine), lease=0), "more than 0 seconds"),
        (
            lambda engine: insert_or_ignore_statement("oracle", sa.Table("z", sa.MetaData())),
            "oracle is not supported",
        ),
    ],
)
def test_a_wrong_choice_gets_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make(sa.create_engine("sqlite://"))


def test_without_sqlalchemy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import headrace.client.once as module

    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtra, match=r"pip install 'headrace\[sql\]'"):
        _ = module.SqlStore


def test_a_handler_may_change_the_value_that_its_id_was_read_from(store: Store) -> None:
    calls: list[int] = []

    @Once("n", store, id=from_fields("id"))
    def handle(record: Record) -> None:
        calls.append(record.value.pop("id"))
        if len(calls) == 1:
            raise OSError

    def given() -> Record:
        return Record("t", 0, 0, value=b'{"id": 7}', value_deserializer=serializers.json().deserialize)

    with pytest.raises(OSError):
        handle(given())
    handle(given())
    handle(given())
    assert calls == [7, 7]


def test_a_claim_asked_for_again_under_its_token_is_ours_for_the_whole_lease(store: Store) -> None:
    assert store.claim("n", b"a", "token", 5).state == "ours"
    assert store.claim("n", b"a", "token", 600).state == "ours"
    other = store.claim("n", b"a", "other", 600)
    assert other.state == "running"
    assert other.left > 5


class Forgetful:
    """A real store whose first answer to a claim is lost on the way."""

    def __init__(self, store: Store) -> None:
        self.done, self.release = store.done, store.release
        self._store = store
        self._lost = False

    def claim(self, name: str, identity: bytes, token: str, lease: float | None) -> Claim:
        claim = self._store.claim(name, identity, token, lease)
        if not self._lost:
            self._lost = True
            raise StoreUnavailable("the connection broke")
        return claim


@pytest.mark.parametrize("on_crash", ["repeat", "skip"])
def test_a_claim_whose_answer_was_lost_is_nobody_elses(store: Store, on_crash: Any) -> None:
    handled: list[int] = []
    handle = Once("n", Forgetful(store), on_crash=on_crash)(lambda record: handled.append(1))
    with pytest.raises(StoreUnavailable):
        handle(record())
    handle(record())
    handle(record())
    assert handled == [1]


class Slow:
    """A real store that answers a claim when it is told to."""

    def __init__(self, store: Store) -> None:
        self.done, self.release = store.done, store.release
        self._store = store
        self.asked, self.answer = threading.Event(), threading.Event()

    def claim(self, name: str, identity: bytes, token: str, lease: float | None) -> Claim:
        claim = self._store.claim(name, identity, token, lease)
        self.asked.set()
        self.answer.wait(30)
        return claim


async def test_a_handler_cancelled_while_it_claims_gives_the_claim_back(store: Store) -> None:
    slow, handled = Slow(store), []

    @Once("n", slow, on_crash="skip")
    async def handle(record: Record) -> None:
        handled.append(1)

    task = asyncio.ensure_future(handle(record()))
    await asyncio.to_thread(slow.asked.wait, 30)
    task.cancel()
    await asyncio.sleep(0)
    slow.answer.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert handled == []
    await handle(record())
    assert handled == [1]


async def test_what_has_not_been_done_is_not_marked_as_done(store: Store, engine: sa.Engine) -> None:
    """A coroutine that a handler returns has not run yet."""
    handled: list[int] = []

    async def later() -> None:
        handled.append(1)

    with pytest.raises(ConfigError, match="returned a coroutine"):
        Once("n", store)(lambda record: later())(record())
    with pytest.raises(ConfigError, match="returned a coroutine"):
        SqlOnce("n", engine, id=from_header())(lambda record, connection: later())(record())

    async def in_database(record: Record, connection: sa.Connection) -> None: ...

    with pytest.raises(ConfigError, match="takes an ordinary function"):
        SqlOnce("n", engine, id=from_header())(in_database)

    class Callable_:
        async def __call__(self, record: Record) -> None:
            handled.append(2)

    await Once("n", store)(Callable_())(record())
    assert handled == [2]
    SqlOnce("n", engine, id=from_header())(lambda record, connection: handled.append(3))(record())
    assert handled == [2, 3]

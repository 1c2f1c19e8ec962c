"""SQL against a real MariaDB: snapshot and increments in; upserts, inserts and deletes out, each record once."""

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from headrace.connectors import ConfigError, ConnectorError, Rejected, Unavailable
from headrace.connectors.topic import TopicIn, schema_of

FIELDS = [("id", pa.int64()), ("name", pa.string())]


@pytest.fixture
def url(request, mariadb, tmp_path):
    """MariaDB, and where a test asks for both, SQLite, whose upserts are PostgreSQL's."""
    if getattr(request, "param", "mariadb") == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db"
    return mariadb.new_database()


both = pytest.mark.parametrize("url", ["mariadb", "sqlite"], indirect=True)


@pytest.fixture
def execute(url):
    engine = sa.create_engine(url, poolclass=NullPool)

    def run(statement):
        with engine.begin() as connection:
            result = connection.execute(sa.text(statement))
            return [tuple(row) for row in result] if result.returns_rows else None

    return run


@pytest.fixture
def sink(declared, url):
    def make(schema="id BIGINT, name STRING", **settings):
        table = {"type": "sql", "url": url, "table": "orders", "key": "id", "create": True, **settings}
        made = declared(sink=table)
        fields = schema_of(TopicIn(name=("orders",), value="json", schema=schema))
        made.check_schema(fields)
        made.prepare(fields)
        return made

    return make


@both
def test_the_newest_row_of_a_key_stays(sink, chunk, writing, execute):
    upserting = sink()
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"}]
    writing(upserting, chunk(0, rows, schema=FIELDS), chunk(3, [{"id": 2, "name": None}], schema=FIELDS))
    assert execute("SELECT id, name FROM orders ORDER BY id") == [(1, "c"), (2, None)]
    assert execute("SELECT next_offset FROM headrace_connect") == [(4,)]


@both
def test_what_comes_again_adds_nothing_whatever_its_borders(sink, chunk, writing, execute):
    execute("CREATE TABLE orders (id BIGINT, name TEXT)")
    inserting = sink(mode="insert", key=[])
    rows = [{"id": number, "name": "x"} for number in range(10)]
    writing(inserting, chunk(0, rows[:6], schema=FIELDS))
    writing(inserting, chunk(0, rows[:4], schema=FIELDS))
    writing(inserting, chunk(2, rows[2:], schema=FIELDS))
    assert execute("SELECT COUNT(*), COUNT(DISTINCT id) FROM orders") == [(10, 10)]


@both
def test_a_record_without_a_value_deletes_its_row(sink, chunk, writing, execute):
    deleting = sink(delete=True)
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, None, None]
    writing(deleting, chunk(0, rows, schema=FIELDS, keys=[b"1", b"2", b"1", b"9"]))
    assert execute("SELECT id FROM orders") == [(2,)]
    with pytest.raises(Rejected, match="its key 'x' does not give id"):
        writing(deleting, chunk(4, [None], schema=FIELDS, keys=[b"x"]))


def test_a_row_that_comes_back_after_it_was_deleted_stays(sink, chunk, writing, execute):
    execute("CREATE TABLE orders (id VARCHAR(20) PRIMARY KEY, name TEXT)")  # 1 in the value, '1' in the table
    rows = [{"id": 1, "name": "a"}, None, {"id": 1, "name": "b"}]
    writing(sink(delete=True), chunk(0, rows, schema=FIELDS, keys=[b"1", b"1", b"1"]))
    assert execute("SELECT id, name FROM orders") == [("1", "b")]


def test_what_the_database_refuses_is_named_and_the_rest_can_be_written(sink, chunk, writing, execute):
    execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(3) NOT NULL)")
    strict = sink()
    rows = [
        {"id": 1, "name": "a"},
        {"id": 2, "name": "too long"},
        {"id": 3, "name": None},
        {"id": 4, "name": "d"},
    ]
    with pytest.raises(Rejected) as refused:
        writing(strict, chunk(0, rows, schema=FIELDS))
    assert sorted(refused.value.reasons) == [1, 2]
    assert "Data too long" in refused.value.reasons[1]
    assert execute("SELECT COUNT(*) FROM orders") == [(0,)]


def test_a_database_that_is_away_is_told_apart_from_one_that_refuses(
    sink, chunk, declared, writing, tmp_path
):
    away = declared(
        sink={
            "type": "sql",
            "url": f"mysql+pymysql://root@/d?unix_socket={tmp_path}/none",
            "table": "t",
            "key": "id",
        }
    )
    with pytest.raises(Unavailable, match="does not answer"):
        away.check()


def test_mistakes_are_told_before_anything_is_written(declared, execute, url):
    execute("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
    with pytest.raises(
        ConnectorError, match=r"sink.table is 'order', which is not in the database; did you mean orders"
    ):
        declared(sink={"type": "sql", "url": url, "table": "order", "key": "id"}).check()
    with pytest.raises(ConnectorError, match=r"sink.key names nr, but the table orders has only id"):
        declared(sink={"type": "sql", "url": url, "table": "orders", "key": "nr"}).check()
    with pytest.raises(ConnectorError, match=r"source.column is 'nr', but the table orders has id"):
        declared(source={"type": "sql", "url": url, "table": "orders", "column": "nr"}).check()
    with pytest.raises(ConnectorError, match="is not a database URL"):
        declared(sink={"type": "sql", "url": "nonsense", "table": "orders", "key": "id"}).check()
    with pytest.raises(ConfigError, match=r'sink.key is missing: mode = "upsert" needs'):
        declared(sink={"type": "sql", "url": url, "table": "orders"})


def test_a_condition_the_database_does_not_understand_is_told(declared, execute, url):
    execute("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
    execute("INSERT INTO orders VALUES (1)")
    table = {"type": "sql", "url": url, "table": "orders", "column": "id", "settle": 0, "where": "nonsense ="}
    source = declared(source=table)
    with pytest.raises(ConnectorError, match=r"the database refused what was asked: .*syntax"):
        source.latest(source.start())


@both
def test_a_table_is_read_as_it_is_and_then_as_it_grows(declared, execute, url, polled):
    execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, price DECIMAL(10,2), at DATETIME(6))")
    execute("INSERT INTO orders VALUES (1, 9.90, '2026-11-16 07:00:00'), (2, 5, NULL)")
    source = declared(source={"type": "sql", "url": url, "table": "orders", "column": "id", "settle": 0})
    rows, at = polled(source)
    assert rows == [
        {"id": 1, "price": Decimal("9.90"), "at": datetime(2026, 11, 16, 7)},
        {"id": 2, "price": Decimal("5.00"), "at": None},
    ]
    execute("INSERT INTO orders VALUES (3, 1, NULL)")
    assert [row["id"] for row in polled(source, at)[0]] == [3]


def test_changed_rows_come_again_by_the_time_of_their_change(declared, execute, url, polled):
    execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, n INT, changed DATETIME(6))")
    execute(
        "INSERT INTO orders VALUES (1, 1, '2026-11-16 07:00:00.000001'), (2, 1, '2026-11-16 07:00:00.000002')"
    )
    source = declared(
        source={
            "type": "sql",
            "url": url,
            "table": "orders",
            "column": "changed",
            "settle": 0,
            "columns": ["id", "n"],
        }
    )
    _, at = polled(source)
    execute("UPDATE orders SET n = 2, changed = '2026-11-16 07:00:00.000003' WHERE id = 1")
    assert polled(source, at)[0] == [{"id": 1, "n": 2}]


def test_batches_are_bounded_and_split_without_losing_or_doubling_a_row(declared, execute, url, polled):
    execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, kind TEXT)")
    execute("INSERT INTO orders SELECT seq * 3, IF(seq % 10 = 0, 'draft', 'real') FROM seq_1_to_1000")
    source = declared(
        source={
            "type": "sql",
            "url": url,
            "table": "orders",
            "column": "id",
            "settle": 0,
            "max_rows": 256,
            "tasks": 3,
            "where": "kind = 'real'",
        }
    )
    rows, _ = polled(source)
    assert [row["id"] for row in rows] == [n * 3 for n in range(1, 1001) if n % 10]
    first = source.latest(source.start())
    assert len(source.split(source.start(), first)) == 3


def test_a_row_that_commits_behind_others_is_not_lost(declared, execute, url):
    execute("CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)")
    source = declared(
        source={"type": "sql", "url": url, "table": "orders", "column": "id", "settle": "1 hour"}
    )
    slow = sa.create_engine(url, poolclass=NullPool).connect()
    with slow.begin():
        slow.execute(sa.text("INSERT INTO orders (n) VALUES (1)"))
        execute("INSERT INTO orders (n) VALUES (2)")
        assert source.latest(source.start()) == source.start(), "number 1 may still be under way"
    slow.close()
    source._seen = type(source._seen)((seen - 3600, highest) for seen, highest in source._seen)
    until = source.latest(source.start())
    assert [row["n"] for row in source.rows(source.start(), until)] == [1, 2]


@pytest.mark.timeout(900)
def test_a_topic_reaches_a_table_once_although_a_worker_is_killed_after_writing(
    run, new_topic, produce, url, execute, tmp_path
):
    execute("CREATE TABLE orders (id BIGINT)")
    topic = new_topic(2)
    produce(topic, range(300), partition=0)
    produce(topic, range(300, 500), partition=1)
    table = {"url": url, "table": "orders", "mode": "insert", "marker": str(tmp_path / "marker")}
    kind = {"name": topic, "value": "json", "schema": "id BIGINT", "max_records": 250}
    run("to-sql", kind, sink={"type": "killed:KilledSql", **table})
    assert (tmp_path / "marker").exists(), "the worker was killed"
    assert execute("SELECT COUNT(*) FROM orders") > [(0,)]
    assert run("to-sql", kind, sink={"type": "killed:KilledSql", **table}) is None
    assert execute("SELECT COUNT(*), COUNT(DISTINCT id) FROM orders") == [(500, 500)]


@pytest.mark.timeout(900)
def test_only_what_is_new_means_since_it_was_first_run(run, new_topic, read_all, url, execute):
    execute("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
    execute("INSERT INTO orders VALUES (1)")
    topic = new_topic()
    table = {"type": "sql", "url": url, "table": "orders", "column": "id", "settle": 0, "snapshot": False}
    assert run("from-sql", {"name": topic}, source=table) is None
    execute("INSERT INTO orders VALUES (2), (3)")  # while it does not run
    assert run("from-sql", {"name": topic}, source=table) is None
    assert [record.value for record in read_all(topic)] == [b'{"id":2}', b'{"id":3}']

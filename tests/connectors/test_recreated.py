"""A topic that was deleted and created again is another one: its offsets begin anew, and so does every target's count."""

import json

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import sqlalchemy as sa
from deltalake import DeltaTable
from sqlalchemy.pool import NullPool

from headrace.connectors.topic import TopicIn, schema_of

FIELDS = [("id", pa.int64())]
SCHEMA = "id BIGINT"


def ids_in_files(path):
    return sorted(json.loads(line)["id"] for file in path.iterdir() for line in file.open())


def ids_in_parquet(path):
    return sorted(ds.dataset(str(path), partitioning="hive").to_table()["id"].to_pylist())


def ids_in_delta(path):
    return sorted(DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist())


@pytest.fixture
def table(mariadb):
    """A table in MariaDB: how a sink finds it, and the ids it has."""
    url = mariadb.new_database()
    engine = sa.create_engine(url, poolclass=NullPool)

    def ids():
        with engine.connect() as connection:
            return sorted(connection.execute(sa.text("SELECT id FROM orders")).scalars())

    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (id BIGINT)"))
    return {"type": "sql", "url": url, "table": "orders", "mode": "insert"}, ids


@pytest.fixture(params=["sql", "redis", "files", "parquet", "delta"])
def target(request, tmp_path):
    """Every target that keeps offsets: the sink's settings, and the ids it has."""
    path = tmp_path / "out"
    if request.param == "sql":
        return request.getfixturevalue("table")
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        settings = {"type": "redis", "url": f"unix://{server.socket}", "structure": "list", "key": "orders"}
        return settings, lambda: sorted(json.loads(v)["id"] for v in server.client().lrange("orders", 0, -1))
    if request.param == "files":
        return {"type": "files", "path": str(path)}, lambda: ids_in_files(path)
    ids = ids_in_parquet if request.param == "parquet" else ids_in_delta
    settings = {"type": "lake", "path": str(path), "format": request.param, "compact_every": 1}
    return settings, lambda: ids(path)


def test_every_target_counts_by_the_topics_id(target, declared, chunk, writing):
    settings, ids = target
    sink = declared(sink=settings)
    sink.prepare(schema_of(TopicIn(name=("orders",), value="json", schema=SCHEMA)))

    def load(batch, topic_id, numbers):
        rows = [{"id": number} for number in numbers]
        written = writing(sink, chunk(0, rows, schema=FIELDS, topic_id=topic_id))
        sink.commit(batch, [] if written is None else [written])

    load(0, "old", range(5))
    load(1, "old", range(5))
    assert ids() == list(range(5))
    load(2, "new", range(10, 13))
    load(3, "new", range(10, 13))
    assert ids() == [0, 1, 2, 3, 4, 10, 11, 12]


@pytest.mark.timeout(900)
def test_a_topic_made_again_is_read_from_its_beginning_with_or_without_the_checkpoint(
    run, new_topic, make_again, produce, table, tmp_path, caplog
):
    sql, rows = table
    lake = {"type": "lake", "path": str(tmp_path / "lake")}
    topic = new_topic(2)
    kind = {"name": topic, "schema": SCHEMA}

    def move(state="state"):
        assert run("to-sql", kind, sink=sql, state=state) is None
        assert run("to-lake", kind, sink=lake, state=state) is None
        assert rows() == ids_in_parquet(tmp_path / "lake")
        return rows()

    produce(topic, range(10), partition=0)
    produce(topic, range(10, 15), partition=1)
    assert move() == list(range(15))
    make_again(topic)
    produce(topic, range(100, 104))
    assert move() == [*range(15), *range(100, 104)]
    told = [record.getMessage() for record in caplog.records if "deleted and created again" in record.message]
    assert [each.partition(":")[0] for each in told] == ["to-sql", "to-lake"]
    make_again(topic)
    produce(topic, range(200, 220))  # more than the old one ever had
    assert move(state="lost") == [*range(15), *range(100, 104), *range(200, 220)]


@pytest.mark.timeout(900)
def test_a_connector_may_stop_at_a_topic_made_again(run, new_topic, make_again, produce, tmp_path):
    topic = new_topic()
    kind = {"name": topic, "schema": SCHEMA, "recreated": "fail"}
    sink = {"type": "files", "path": str(tmp_path / "out")}
    produce(topic, range(3))
    assert run("to-files", kind, sink=sink) is None
    make_again(topic)
    produce(topic, range(3, 9))
    assert 'set topic.recreated to "read"' in run("to-files", kind, sink=sink)
    assert ids_in_files(tmp_path / "out") == [0, 1, 2]
    assert run("to-files", {**kind, "recreated": "read"}, sink=sink) is None
    assert ids_in_files(tmp_path / "out") == list(range(9))

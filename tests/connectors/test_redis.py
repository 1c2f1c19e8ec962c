"""Redis against a real server: a stream in; strings, hashes, lists and streams out, each record once."""

import logging

import pyarrow as pa
import pytest

from headrace.connectors import ConfigError, ConnectorError, Rejected, Unavailable
from headrace.connectors.topic import TopicIn, schema_of

FIELDS = [("id", pa.int64()), ("name", pa.string())]
ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"}]


@pytest.fixture
def url(redis_server):
    return f"unix://{redis_server.socket}"


@pytest.fixture
def client(redis_server):
    with redis_server.client() as client:
        yield client


@pytest.fixture
def sink(declared, url):
    def make(**settings):
        made = declared(sink={"type": "redis", "url": url, **settings})
        made.check_schema(schema_of(TopicIn(name=("orders",), value="json", schema="id BIGINT, name STRING")))
        return made

    return make


def test_a_record_becomes_the_value_of_its_key_and_none_deletes_it(sink, chunk, writing, client):
    strings = sink(key="order:{id}", ttl=100)
    writing(strings, chunk(0, ROWS, schema=FIELDS), chunk(3, [None], schema=FIELDS, keys=[b"2"]))
    assert client.get("order:1") == b'{"id":1,"name":"c"}'
    assert 0 < client.ttl("order:1") <= 100
    assert client.get("order:2") is None


def test_a_record_becomes_a_hash(sink, chunk, writing, client):
    writing(sink(structure="hash", key="order:{id}"), chunk(0, ROWS, schema=FIELDS))
    assert client.hgetall("order:1") == {b"id": b"1", b"name": b"c"}


def test_what_comes_again_adds_nothing_whatever_its_borders(sink, chunk, writing, client):
    lists = sink(structure="list", key="orders")
    rows = [{"id": number, "name": "x"} for number in range(2_000)]
    writing(lists, chunk(0, rows[:1_200], schema=FIELDS))
    writing(lists, chunk(0, rows[:700], schema=FIELDS))
    writing(lists, chunk(300, rows[300:], schema=FIELDS))
    assert client.llen("orders") == 2_000
    assert client.hgetall("headrace:connect:connector") == {b"orders-0": b"2000"}


def test_a_list_and_a_stream_keep_as_many_as_asked(sink, chunk, writing, client):
    writing(sink(structure="list", key="newest", max_length=2), chunk(0, ROWS, schema=FIELDS))
    assert client.lrange("newest", 0, -1) == [b'{"id":2,"name":"b"}', b'{"id":1,"name":"c"}']
    streams = sink(structure="stream", key="orders:{name}")
    writing(streams, chunk(3, ROWS, schema=FIELDS))
    assert client.xrange("orders:a")[0][1] == {b"id": b"1", b"name": b"a"}


def test_what_redis_refuses_is_named_and_what_came_before_is_not_repeated(sink, chunk, writing, client):
    client.set("orders:b", "not a list")
    lists = sink(structure="list", key="orders:{name}")
    with pytest.raises(Rejected) as refused:
        writing(lists, chunk(0, ROWS, schema=FIELDS))
    assert list(refused.value.reasons) == [1]
    assert "wrong kind of value" in refused.value.reasons[1]
    rest = chunk(0, ROWS, schema=FIELDS)
    rest = type(rest)("orders", 0, 0, 3, rest.rows.take([0, 2]))
    writing(lists, rest)
    assert client.llen("orders:a") == client.llen("orders:c") == 1


def test_mistakes_are_told_before_anything_is_written(sink, declared, url):
    with pytest.raises(ConnectorError, match=r"sink.key is 'order:\{nr\}', but there is no field nr"):
        sink(key="order:{nr}")
    with pytest.raises(ConfigError, match=r"sink.ttl is given, but a list keeps its elements"):
        sink(structure="list", key="orders", ttl=1)
    with pytest.raises(ConnectorError, match="is not a Redis URL"):
        declared(sink={"type": "redis", "url": "localhost", "key": "k"}).check()


def test_a_server_that_is_away_is_told(redis_server, sink, chunk, writing):
    strings = sink(key="order:{id}")
    redis_server.kill()
    with pytest.raises(Unavailable, match="does not answer"):
        writing(strings, chunk(0, ROWS, schema=FIELDS))


def test_a_stream_is_read_as_it_is_and_then_as_it_grows(declared, url, client, polled):
    first = client.xadd("events", {"kind": "click", "page": "/"}).decode()
    source = declared(source={"type": "redis", "url": url, "stream": "events", "max_rows": 2})
    rows, at = polled(source)
    assert rows == [{"_id": first, "kind": "click", "page": "/"}]
    for number in range(5):
        client.xadd("events", {"n": number})
    rows, at = polled(source, at)
    assert [row["n"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert polled(source, at)[0] == []


def test_a_key_that_is_no_stream_is_told(declared, url, client):
    client.set("events", "x")
    with pytest.raises(ConnectorError, match="which is a string and not a stream"):
        declared(source={"type": "redis", "url": url, "stream": "events"}).check()


@pytest.mark.timeout(900)
def test_a_stream_goes_through_a_topic_to_a_list_once_although_redis_is_away_and_a_worker_is_killed(
    run, new_topic, redis_server, url, tmp_path
):
    """The server comes back when the connector has noticed; the worker dies when it has written."""
    topic = new_topic()
    redis_server.kill()

    class ComeBack(logging.Handler):
        def emit(self, record):
            if "starting again" in record.getMessage():
                redis_server.start()
                with redis_server.client() as client:
                    for number in range(500):
                        client.xadd("events", {"id": number})
                logging.getLogger("headrace.connectors").removeHandler(self)

    logging.getLogger("headrace.connectors").addHandler(ComeBack())
    source = {"type": "redis", "url": url, "stream": "events"}
    assert run("from-redis", {"name": topic, "key": "id"}, source=source) is None
    sink = {
        "type": "killed:KilledRedis",
        "url": url,
        "structure": "list",
        "key": "copy",
        "marker": str(tmp_path / "marker"),
    }
    with redis_server.client() as client:
        run("to-redis", {"name": topic, "max_records": 250}, sink=sink)
        assert (tmp_path / "marker").exists(), "the worker was killed"
        assert client.llen("copy") > 0
        assert run("to-redis", {"name": topic, "max_records": 250}, sink=sink) is None
        assert client.llen("copy") == len(set(client.lrange("copy", 0, -1))) == 500

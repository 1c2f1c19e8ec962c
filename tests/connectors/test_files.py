"""Files as a sink: whole, named after the offsets they hold, and never a record twice. (On Spark: test_cli.py.)"""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connectors import ConnectorError, Rejected
from headrace.connectors.topic import TopicIn, schema_of

FIELDS = [("id", pa.int64()), ("name", pa.string())]


def rows(first, count):
    return [{"id": number, "name": f"n{number}"} for number in range(first, first + count)]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def sink(declared, out):
    def make(**settings):
        return declared(sink={"type": "files", "path": str(out), **settings})

    return make


def names(out):
    return sorted(path.name for path in out.iterdir())


def test_a_task_makes_one_file_that_tells_what_it_holds(sink, chunk, writing, out):
    writing(sink(), chunk(0, rows(0, 3), schema=FIELDS), chunk(3, [None, *rows(4, 1)], schema=FIELDS))
    assert names(out) == [f"orders-00000-{0:020d}-{5:020d}.jsonl"]
    lines = [json.loads(line) for line in (out / names(out)[0]).open()]
    assert lines == [*rows(0, 3), *rows(4, 1)]


def test_what_comes_again_adds_nothing_whatever_its_borders(sink, chunk, writing, out):
    writing(sink(), chunk(0, rows(0, 6), schema=FIELDS))
    writing(sink(), chunk(0, rows(0, 4), schema=FIELDS))
    writing(sink(), chunk(2, rows(2, 8), schema=FIELDS))
    writing(sink(), chunk(0, rows(100, 1), schema=FIELDS, partition=1))
    ids = sorted(json.loads(line)["id"] for path in out.iterdir() for line in path.open())
    assert ids == [*range(10), 100]


def test_what_is_not_finished_is_never_there(sink, chunk, out):
    failing = sink()
    failing.open()
    failing.write(chunk(0, rows(0, 3), schema=FIELDS))
    failing.close()
    assert names(out) == []


def test_what_a_killed_writer_left_is_cleaned_away_when_it_is_old(sink, out):
    out.mkdir()
    (out / ".old.tmp").touch()
    os.utime(out / ".old.tmp", (0, 0))
    (out / ".new.tmp").touch()
    sink().prepare(schema_of(TopicIn(name=("t",))))
    assert names(out) == [".new.tmp"]


def test_csv_text_and_parquet_are_what_they_say(sink, chunk, writing, out):
    writing(sink(format="csv"), chunk(0, rows(0, 1), schema=FIELDS))
    writing(sink(format="text"), chunk(10, rows(10, 2), schema=FIELDS))
    writing(sink(format="parquet", metadata=True), chunk(20, rows(20, 1), schema=FIELDS, keys=[b"k"]))
    csv, text, parquet = (out / name for name in names(out))
    assert csv.read_text() == '"id","name"\n0,"n0"\n'
    assert text.read_text() == '{"id":10,"name":"n10"}\n{"id":11,"name":"n11"}\n'
    (row,) = pq.read_table(parquet).to_pylist()
    assert (row["id"], row["_offset"], row["_key"]) == (20, 20, b"k")


def test_what_does_not_fit_is_told(sink, chunk, writing):
    torn = chunk(0, [{"id": 1, "name": "a"}], schema=FIELDS)
    value = pa.array([b"two\nlines"], pa.binary())
    torn = type(torn)("orders", 0, 0, 1, torn.rows.set_column(5, "_value", value))
    with pytest.raises(Rejected, match="its value has several lines"):
        writing(sink(format="text"), torn)
    with pytest.raises(ConnectorError, match="CSV has no place for the nested field tags"):
        sink(format="csv").check_schema(schema_of(TopicIn(name=("t",), schema="tags ARRAY<STRING>")))

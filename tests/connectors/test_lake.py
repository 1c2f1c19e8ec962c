"""Lake tables: partitions by time, small files merged at any moment, each record once in Parquet and in Delta."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from headrace.connectors import ConfigError, ConnectorError
from headrace.connectors.files.landing import FileTree
from headrace.connectors.lake import parquet
from headrace.connectors.topic import TopicIn, schema_of

FIELDS = [("id", pa.int64())]
EVENING = datetime(2026, 11, 16, 23, 59, 58, tzinfo=UTC)


def ids(path):
    return sorted(
        ds.dataset(path, partitioning="hive", exclude_invalid_files=False).to_table()["id"].to_pylist()
    )


def delta_ids(path):
    return sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


def rows(first, count):
    return [{"id": number} for number in range(first, first + count)]


def over_midnight(number):
    return EVENING + timedelta(seconds=number)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "lake")


@pytest.fixture
def sink(declared, path):
    def make(schema="id BIGINT", **settings):
        made = declared(sink={"type": "lake", "path": path, **settings})
        fields = schema_of(TopicIn(name=("orders",), value="json", schema=schema))
        made.check_schema(fields)
        made.prepare(fields)
        return made

    return make


@pytest.fixture
def load(writing):
    """A batch: one task a chunk, then the commit."""

    def batch(sink, number, *chunks):
        sink.begin(number)
        written = [writing(sink, chunk) for chunk in chunks]
        sink.commit(number, [one for one in written if one is not None])

    return batch


def test_rows_go_to_the_day_or_the_hour_of_their_record(sink, chunk, load, path):
    load(sink(), 0, chunk(0, rows(0, 4), schema=FIELDS, at=over_midnight))
    assert FileTree(path).directories() == ["", "date=2026-11-16", "date=2026-11-17"]
    assert ids(path) == [0, 1, 2, 3]
    days = ds.dataset(path, partitioning="hive").to_table()
    assert dict(zip(days["id"].to_pylist(), days["date"].to_pylist(), strict=True)) == {
        0: "2026-11-16",
        1: "2026-11-16",
        2: "2026-11-17",
        3: "2026-11-17",
    }


def test_a_field_may_choose_the_partition(sink, chunk, load, path):
    by_field = sink("id BIGINT, made TIMESTAMP", partition="hour", time_field="made")
    made = [{"id": 1, "made": datetime(2026, 1, 2, 3, tzinfo=UTC)}, {"id": 2, "made": None}]
    load(by_field, 0, chunk(0, made, schema=[*FIELDS, ("made", pa.timestamp("us", "UTC"))]))
    unknown = "date=__HIVE_DEFAULT_PARTITION__"
    assert FileTree(path).directories() == [
        "",
        "date=2026-01-02",
        "date=2026-01-02/hour=3",
        unknown,
        f"{unknown}/hour=__HIVE_DEFAULT_PARTITION__",
    ]


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_what_comes_again_adds_nothing_whatever_its_borders(sink, chunk, load, path, format):
    table = sink(format=format)
    load(table, 0, chunk(0, rows(0, 6), schema=FIELDS, at=over_midnight))
    load(table, 0, chunk(0, rows(0, 4), schema=FIELDS, at=over_midnight))
    load(table, 0, chunk(2, rows(2, 8), schema=FIELDS, at=lambda number: over_midnight(number + 2)))
    assert (ids if format == "parquet" else delta_ids)(path) == list(range(10))


def test_small_files_are_merged_and_the_names_still_tell_what_is_there(sink, chunk, load, path):
    table = sink(compact_every=5)
    for number in range(5):
        load(table, number, chunk(number * 10, rows(number * 10, 10), schema=FIELDS))
    (merged,) = FileTree(path).names("date=2026-11-16")
    assert (merged.first, merged.next) == (0, 50)
    load(table, 4, chunk(40, rows(40, 10), schema=FIELDS))
    assert ids(path) == list(range(50))


@pytest.mark.parametrize("finish", ["merge", "start"])
def test_a_merge_that_was_cut_off_is_finished_by_the_next_one_or_the_next_start(
    finish, sink, chunk, load, path
):
    table = sink(compact_every=0)
    for number in range(3):
        load(table, number, chunk(number * 10, rows(number * 10, 10), schema=FIELDS))
    place = FileTree(path)
    before = {name: place.path("date=2026-11-16", str(name)) for name in place.names("date=2026-11-16")}
    kept = {file: Path(file).read_bytes() for file in before.values()}
    parquet.compact(path, 1 << 20)
    for file, data in kept.items():  # as if it had died before it deleted them
        Path(file).write_bytes(data)
    assert len(ids(path)) == 60
    if finish == "merge":
        parquet.compact(path, 1 << 20)
    else:
        sink()
    assert ids(path) == list(range(30))


def test_files_that_are_large_enough_are_left_alone(sink, chunk, load, path):
    table = sink(compact_every=0)
    for number in range(4):
        load(table, number, chunk(number * 10, rows(number * 10, 10), schema=FIELDS))
    assert parquet.compact(path, 1) == 0
    assert len(FileTree(path).names("date=2026-11-16")) == 4


def test_a_delta_table_is_merged_and_remembers_what_it_has(sink, chunk, load, path):
    table = sink(format="delta", compact_every=4, metadata=True)
    for number in range(4):
        load(table, number, chunk(number * 10, rows(number * 10, 10), schema=FIELDS))
    assert len(DeltaTable(path).file_uris()) == 1
    DeltaTable(path).create_checkpoint()
    load(table, 3, chunk(20, rows(20, 25), schema=FIELDS))
    assert delta_ids(path) == list(range(45))
    assert sorted(DeltaTable(path).to_pyarrow_table()["_offset"].to_pylist()) == list(range(45))


def test_files_no_commit_names_are_not_part_of_the_table(sink, chunk, load, writing, path):
    table = sink(format="delta")
    writing(table, chunk(0, rows(0, 5), schema=FIELDS))  # and the driver died
    load(table, 0, chunk(0, rows(0, 5), schema=FIELDS))
    assert delta_ids(path) == [0, 1, 2, 3, 4]


def test_mistakes_are_told_before_anything_is_written(sink, declared, path):
    with pytest.raises(ConnectorError, match=r"sink.time_field is 'id', which must be a TIMESTAMP or DATE"):
        sink(time_field="id")
    with pytest.raises(ConnectorError, match=r"topic.schema has the field date"):
        sink("id BIGINT, date DATE")
    sink(format="delta")
    with pytest.raises(ConnectorError, match="has no column name: it has id, date"):
        sink("id BIGINT, name STRING", format="delta")
    with pytest.raises(
        ConnectorError, match=r"is partitioned by date, and sink.partition asks for date, hour"
    ):
        sink(format="delta", partition="hour")
    with pytest.raises(ConfigError, match=r"sink.keep_hours is 0: it must be at least 1"):
        declared(sink={"type": "lake", "path": path, "keep_hours": 0})
    with pytest.raises(ConnectorError, match="where there is no Delta table"):
        declared(source={"type": "lake", "path": path + "-none", "format": "delta"}).check()


def test_a_delta_table_is_read_as_it_is_and_then_by_its_versions(sink, chunk, load, declared, path, polled):
    table = sink(format="delta", compact_every=3)
    load(table, 0, chunk(0, rows(0, 3), schema=FIELDS))
    source = declared(source={"type": "lake", "path": path, "format": "delta"})
    found, at = polled(source)
    assert sorted(row["id"] for row in found) == [0, 1, 2]
    assert str(found[0]["date"]) == "2026-11-16"
    load(table, 1, chunk(3, rows(3, 2), schema=FIELDS))
    load(table, 2, chunk(5, rows(5, 1), schema=FIELDS))  # and a merge, which changes no data
    found, at = polled(source, at)
    assert sorted(row["id"] for row in found) == [3, 4, 5]
    DeltaTable(path).delete("id = 1")
    with pytest.raises(ConnectorError, match=r"deletes or changes rows, which a topic cannot"):
        polled(source, at)


def test_parquet_below_a_directory_is_read_with_its_partitions(sink, chunk, load, declared, path, polled):
    table = sink(compact_every=0)
    load(table, 0, chunk(0, rows(0, 2), schema=FIELDS))
    source = declared(source={"type": "lake", "path": path})
    found, at = polled(source)
    assert found == [{"id": 0, "date": "2026-11-16"}, {"id": 1, "date": "2026-11-16"}]
    load(table, 1, chunk(2, rows(2, 1), schema=FIELDS))
    assert polled(source, at)[0] == [{"id": 2, "date": "2026-11-16"}]


@pytest.mark.timeout(900)
def test_a_topic_reaches_a_delta_table_once_although_the_driver_fails_after_its_commit(
    run, new_topic, produce, path, tmp_path
):
    topic = new_topic(2)
    produce(topic, range(300), partition=0)
    produce(topic, range(300, 500), partition=1)
    sink = {"type": "killed:FailedLake", "path": path, "format": "delta", "marker": str(tmp_path / "marker")}
    read = {"name": topic, "schema": "id BIGINT", "max_records": 250}
    assert "the machine went away" in run("to-lake", read, sink=sink)
    assert delta_ids(path) == list(range(500))
    assert run("to-lake", read, sink=sink) is None
    assert delta_ids(path) == list(range(500))

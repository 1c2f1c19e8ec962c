"""Files are followed by what they are and not by their names: rotation, truncation, unfinished lines."""

import os

import pytest

from headrace.connectors import BadRow, ConnectorError, Raw
from headrace.connectors.config import declare


@pytest.fixture
def follow(tmp_path):
    """A source over ``tmp_path`` and the rows of its next batch."""

    class Follow:
        def __init__(self, path="*.log", **settings):
            table = {"type": "files", "path": str(tmp_path / path), "format": "text", **settings}
            self.source = declare({"topic": {"name": "t"}, "source": table}, default_name="c").connector
            self.at = self.source.start()

        def batch(self):
            until = self.source.latest(self.at)
            rows = [
                row for stretch in self.source.split(self.at, until) for row in self.source.rows(*stretch)
            ]
            self.at = until
            return [row.value.decode() if isinstance(row, Raw) else row for row in rows]

    return Follow


def append(path, text):
    with open(path, "a") as file:
        file.write(text)


def test_a_growing_file_gives_its_new_lines_only(follow, tmp_path):
    following = follow()
    assert following.batch() == []
    append(tmp_path / "app.log", "one\ntwo\n")
    assert following.batch() == ["one", "two"]
    append(tmp_path / "app.log", "three\n")
    assert following.batch() == ["three"]
    assert following.batch() == []


def test_an_unfinished_line_waits_for_its_end(follow, tmp_path):
    following = follow()
    append(tmp_path / "app.log", "one\ntw")
    assert following.batch() == ["one"]
    append(tmp_path / "app.log", "o\n")
    assert following.batch() == ["two"]


def test_a_last_line_without_an_end_is_taken_from_a_file_that_rests(follow, tmp_path):
    following = follow(line_timeout="1 minute")
    append(tmp_path / "app.log", "one\ntwo")
    os.utime(tmp_path / "app.log", (0, 0))
    assert following.batch() == ["one"]
    assert following.batch() == ["two"]


def test_a_rotated_log_is_read_to_its_end_and_the_new_one_from_its_beginning(follow, tmp_path):
    following = follow()
    append(tmp_path / "app.log", "one\n")
    assert following.batch() == ["one"]
    append(tmp_path / "app.log", "two\n")
    os.rename(tmp_path / "app.log", tmp_path / "app.log.1")
    append(tmp_path / "app.log", "three\n")
    assert sorted(following.batch()) == ["three", "two"]
    append(tmp_path / "app.log.1", "late\n")
    assert following.batch() == ["late"]


def test_a_truncated_log_is_read_from_its_beginning(follow, tmp_path):
    following = follow()
    append(tmp_path / "app.log", "a long first line\n")
    assert following.batch() == ["a long first line"]
    os.truncate(tmp_path / "app.log", 0)
    append(tmp_path / "app.log", "new\n")
    assert following.batch() == ["new"]


def test_another_file_in_the_place_of_a_deleted_one_is_read_from_its_beginning(follow, tmp_path):
    following = follow()
    append(tmp_path / "app.log", "one\n")
    assert following.batch() == ["one"]
    os.unlink(tmp_path / "app.log")
    append(tmp_path / "app.log", "other and longer\n")  # may well get the same inode
    assert following.batch() == ["other and longer"]


def test_a_batch_is_bounded_and_the_rest_comes_next(follow, tmp_path):
    following = follow(max_bytes=8)
    append(tmp_path / "app.log", "one\ntwo\nthree\na line longer than a batch\n")
    assert following.batch() == ["one", "two"]
    assert following.batch() == ["three"]
    assert following.batch() == ["a line longer than a batch"]


def test_the_same_stretch_gives_the_same_rows_whatever_came_later(follow, tmp_path):
    following = follow()
    append(tmp_path / "app.log", "one\ntwo\n")
    start = following.at
    end = following.source.latest(start)
    append(tmp_path / "app.log", "three\n")
    os.rename(tmp_path / "app.log", tmp_path / "app.old")
    again = [
        row.value for stretch in following.source.split(start, end) for row in following.source.rows(*stretch)
    ]
    assert again == [b"one", b"two"]


def test_asked_for_what_is_there_now_it_stops_there(follow, tmp_path):
    following = follow(max_bytes=4)
    append(tmp_path / "app.log", "one\ntwo\n")
    following.source.until_now()
    append(tmp_path / "app.log", "three\n")
    append(tmp_path / "new.log", "four\n")
    assert following.batch() + following.batch() == ["one", "two"]
    assert following.batch() == []


def test_csv_has_names_from_its_header_and_types_as_asked(follow, tmp_path):
    following = follow("*.csv", format="csv", types={"id": "int", "paid": "bool"})
    append(tmp_path / "a.csv", 'id,name,paid\n1,"Doe, J.",true\n')
    assert following.batch() == [{"id": 1, "name": "Doe, J.", "paid": True}]
    append(tmp_path / "a.csv", "2,Roe,\nx,Poe,true\n3,few\n")
    good, *bad = following.batch()
    assert good == {"id": 2, "name": "Roe", "paid": None}
    assert all(isinstance(row, BadRow) for row in bad)
    assert "has 'x' in id, which is not int" in bad[0].reason
    assert "has 2 columns and not 3" in bad[1].reason


def test_json_lines_are_sent_as_they_are_and_broken_ones_are_told_apart(follow, tmp_path):
    following = follow("*.json", format="json")
    append(tmp_path / "a.json", '{"id": 1,  "n": 1.10}\n\n{"id": \n[1]\n')
    good, broken, not_an_object = following.batch()
    assert good == '{"id": 1,  "n": 1.10}'
    assert "at byte 23 is not JSON" in broken.reason
    assert "is not a JSON object" in not_an_object.reason


def test_parquet_files_are_taken_whole_when_they_are_complete(follow, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    following = follow("*.parquet", format="parquet")
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:40])
    assert following.batch() == []
    (tmp_path / "a.parquet").write_bytes(data)
    assert following.batch() == [{"id": 1}, {"id": 2}]
    assert following.batch() == []


def test_another_file_as_long_as_the_one_before_is_read_too(follow, tmp_path):
    following = follow()
    append(tmp_path / "app.log", "one\n")
    assert following.batch() == ["one"]
    os.truncate(tmp_path / "app.log", 0)
    append(tmp_path / "app.log", "two\n")
    assert following.batch() == ["two"]
    os.utime(tmp_path / "app.log")
    assert following.batch() == []


def test_a_file_that_is_away_for_a_moment_is_read_on_and_not_again(follow, tmp_path):
    following = follow()
    append(tmp_path / "app.log", "one\n")
    assert following.batch() == ["one"]
    os.rename(tmp_path / "app.log", tmp_path.parent / "elsewhere")  # as a look between two names would see it
    append(tmp_path / "app.log", "new\n")
    assert following.batch() == ["new"]
    os.rename(tmp_path.parent / "elsewhere", tmp_path / "app.1.log")
    append(tmp_path / "app.1.log", "two\n")
    assert following.batch() == ["two"]


@pytest.fixture
def unprivileged():
    """A directory that everybody may look into, and the rights of nobody in particular while the test asks for them."""
    import shutil
    import tempfile
    from contextlib import contextmanager
    from pathlib import Path

    @contextmanager
    def rights():
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    directory = Path(tempfile.mkdtemp(prefix="headrace-"))
    directory.chmod(0o755)
    yield directory, rights
    shutil.rmtree(directory)


def test_a_file_that_may_not_be_read_is_told_and_not_passed_over(follow, unprivileged):
    directory, rights = unprivileged
    append(directory / "app.log", "one\n")
    (directory / "app.log").chmod(0)
    following = follow(str(directory / "*.log"))
    sentence = (
        r"app.log cannot be read: Permission denied; let this user read it, or leave it out of source.path"
    )
    with rights(), pytest.raises(ConnectorError, match=sentence):
        following.source.check()
    with rights(), pytest.raises(ConnectorError, match=sentence):
        following.batch()
    (directory / "app.log").chmod(0o644)
    until = following.source.latest(following.at)
    (directory / "app.log").chmod(0)
    with rights(), pytest.raises(ConnectorError, match=sentence):
        list(following.source.rows({}, until))
    directory.chmod(0o700)
    with rights(), pytest.raises(ConnectorError, match="cannot be looked into: Permission denied"):
        following.source.check()
    directory.chmod(0o755)

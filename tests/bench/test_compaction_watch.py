"""Compaction is noticed from outside, by what any cleaner that keeps Kafka's layout does to a directory."""

import time

import pytest

from bench.compaction import CompactionWatch
from tests.waiting import until


@pytest.fixture
def segments(tmp_path):
    for number in range(3):
        (tmp_path / f"{number:020d}.log").write_bytes(b"x" * 1000)
    return tmp_path


def test_a_directory_that_only_grows_is_not_being_compacted(segments):
    with CompactionWatch(segments) as watch:
        with (segments / f"{2:020d}.log").open("ab") as active:
            active.write(b"more")
        (segments / f"{3:020d}.log").write_bytes(b"a new segment")
    assert not watch.seen
    assert watch.replaced_per_second == 0


def test_a_segment_being_written_is_seen(segments):
    with CompactionWatch(segments) as watch:
        (segments / f"{0:020d}.log.cleaned").write_bytes(b"")
        until(lambda: watch.seen)
    assert watch.replaced_per_second == 0


def test_segments_that_give_way_to_others_are_counted_by_their_size(segments):
    begun = time.monotonic()
    with CompactionWatch(segments) as watch:
        swap = segments / f"{0:020d}.log.swap"
        swap.write_bytes(b"y")
        (segments / f"{1:020d}.log").rename(segments / f"{1:020d}.log.deleted")
        swap.rename(segments / f"{0:020d}.log")
        until(lambda: watch.replaced == 2000)
    assert watch.seen
    assert watch.replaced_per_second >= 2000 / (time.monotonic() - begun)

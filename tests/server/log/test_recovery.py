"""After a crash the log holds every whole batch, ends before the first damaged one, and its indexes are
right."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headrace.server.log.partition import PartitionLog, ReopenFacts
from headrace.server.log.segment import Segment
from headrace.wire.batch import iterate_batches

SETTINGS = {"segment_bytes": 1500, "index_interval_bytes": 200}


def fill(lab, batches: int = 40, **settings) -> PartitionLog:
    log = lab.open(**(SETTINGS | settings))
    for number in range(batches):
        lab.clock.advance(10)
        lab.append(log, b"%03d" % number * 10, leader_epoch=number // 15)
    return log


def crash(log: PartitionLog) -> None:
    """Drop a log as a killed process does: nothing that is only in memory is written."""
    log.load().release()


def check_indexes(log: PartitionLog) -> None:
    """Every entry names a batch that is there, and the time index the largest timestamp up to it."""
    for segment in log.load().segments:
        batches = dict(segment.headers(0))
        for number in range(segment.offset_index.count):
            relative, position = segment.offset_index.entry(number)
            assert batches[position].last_offset == segment.base_offset + relative
        last_offsets = {header.last_offset: header for header in batches.values()}
        previous = -1
        for number in range(segment.time_index.count):
            timestamp, relative = segment.time_index.entry(number)
            assert last_offsets[segment.base_offset + relative].max_timestamp == timestamp > previous
            previous = timestamp
        assert segment.max_timestamp == max((h.max_timestamp for h in batches.values()), default=-1)


@pytest.mark.parametrize("recovery_point", [0, 7, 20, 33, 40])
def test_after_a_crash_everything_that_was_written_is_there(lab, recovery_point):
    log = fill(lab)
    expected = lab.values(log)
    epochs = log.load().epochs.entries
    crash(log)
    log = lab.open(ReopenFacts(recovery_point=recovery_point), **SETTINGS)
    assert lab.values(log) == expected
    assert log.log_end_offset == 40
    assert log.load().epochs.entries == epochs == [(0, 0), (1, 15), (2, 30)]
    check_indexes(log)


def test_only_what_follows_the_recovery_point_is_read(lab, monkeypatch):
    log = fill(lab, 4000, segment_bytes=1 << 20)
    log.flush()
    point = log.recovery_point
    for number in range(5):
        lab.append(log, b"tail %d" % number)
    log.close()
    checked: list[int] = []
    batches = Segment.checked_batches

    def counting(self, position, end):
        for found in batches(self, position, end):
            checked.append(found[1].base_offset)
            yield found

    monkeypatch.setattr(Segment, "checked_batches", counting)
    log = lab.open(ReopenFacts(recovery_point=point), **SETTINGS)
    log.load()
    assert log.log_end_offset == 4005
    assert len(checked) < 20
    assert checked[0] < point


def test_a_tail_torn_at_any_byte_is_cut_and_nothing_else(lab, tmp_path):
    log = fill(lab, 5)
    path = log.load().active.path(".log")
    whole = os.path.getsize(path)
    last = len(lab.batch(b"004" * 10))
    crash(log)
    shutil.copytree(log.directory, tmp_path / "origin")
    for cut in range(whole - last, whole):
        shutil.rmtree(log.directory)
        shutil.copytree(tmp_path / "origin", log.directory)
        os.truncate(path, cut)
        log = lab.open(**SETTINGS)
        assert len(lab.values(log)) == 4
        assert log.log_end_offset == 4
        assert os.path.getsize(path) == whole - last
        lab.append(log, b"goes on", leader_epoch=0)
        assert lab.values(log)[-1] == b"goes on"
        crash(log)


@pytest.mark.parametrize("batch_number", [0, 2, 4])
def test_a_flipped_byte_ends_the_log_before_its_batch(lab, tmp_path, batch_number):
    log = fill(lab, 5)
    path = log.load().active.path(".log")
    data = bytearray(Path(path).read_bytes())
    positions = [position for position, _ in iterate_batches(data)]
    crash(log)
    origin = tmp_path / "origin"
    shutil.copytree(log.directory, origin)
    start = positions[batch_number]
    # Base offset and leader epoch (bytes 0-7 and 12-15) lie outside the checksum; offsets must still grow.
    for place in [8, 9, 11, 16, 17, 20, 21, 22, 26, 30, 40, 50, 56, 60, 61, 70, 90]:
        damaged = bytearray(data)
        damaged[start + place] ^= 0x55
        shutil.rmtree(log.directory)
        shutil.copytree(origin, log.directory)
        with open(path, "wb") as file:
            file.write(damaged)
        log = lab.open(**SETTINGS)
        assert lab.values(log) == [b"%03d" % number * 10 for number in range(batch_number)]
        assert log.log_end_offset == batch_number
        crash(log)


def test_segments_after_a_damaged_one_are_dropped(lab):
    log = fill(lab)
    assert len(log.load().segments) > 2
    second = log.load().segments[1]
    path, base = second.path(".log"), second.base_offset
    crash(log)
    with open(path, "r+b") as file:
        file.seek(30)
        file.write(b"\xff\xff")
    log = lab.open(**SETTINGS)
    assert log.load().segments.bases == [0, base]
    assert log.log_end_offset == base
    names = {name for name in os.listdir(log.directory) if name.endswith(".log")}
    assert names == {f"{0:020d}.log", f"{base:020d}.log"}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "odd length", "zeros", "noise"])
def test_missing_or_damaged_indexes_are_rebuilt(lab, kind, damage, clean):
    log = fill(lab)
    expected = lab.values(log)
    log.close()
    for name in os.listdir(log.directory):
        if not name.endswith(kind):
            continue
        path = os.path.join(log.directory, name)
        if damage == "missing":
            os.unlink(path)
        elif damage == "odd length":
            with open(path, "ab") as file:
                file.write(b"xyz")
        elif damage == "zeros":
            with open(path, "ab") as file:
                file.write(bytes(24))
        elif not clean:
            size = os.path.getsize(path)
            with open(path, "wb") as file:
                file.write(os.urandom(size))
    log = lab.open(ReopenFacts(clean=clean, recovery_point=0), **SETTINGS)
    assert lab.values(log) == expected
    assert [lab.records(log, offset)[0].offset for offset in range(40)] == list(range(40))
    check_indexes(log)


def test_an_index_without_its_log_is_removed(lab):
    log = fill(lab)
    log.close()
    orphan = os.path.join(log.directory, f"{99999:020d}.index")
    with open(orphan, "wb") as file:
        file.write(bytes(8))
    log = lab.open(ReopenFacts(clean=True), **SETTINGS)
    log.load()
    assert not os.path.exists(orphan)


def test_a_damaged_epoch_file_is_rebuilt_from_the_batches(lab):
    log = fill(lab)
    crash(log)
    with open(os.path.join(log.directory, "leader-epoch-checkpoint"), "wb") as file:
        file.write(b"\x00garbage\n\n")
    log = lab.open(**SETTINGS)
    log.load()
    assert log.load().epochs.entries == [(0, 0), (1, 15), (2, 30)]


def test_after_a_clean_stop_nothing_is_read_from_the_segments(lab, monkeypatch):
    log = fill(lab)
    facts = log.close()

    def refuse(*_args):
        raise AssertionError("the log was scanned")

    with monkeypatch.context() as patch:
        patch.setattr(Segment, "headers", refuse)
        patch.setattr(Segment, "checked_batches", refuse)
        log = lab.open(facts, **SETTINGS)
        assert not log.is_loaded
        assert (log.log_start_offset, log.log_end_offset) == (0, 40)
        log.load()
    assert len(lab.values(log)) == 40
    check_indexes(log)


def test_a_file_nobody_knows_is_left_alone(lab):
    log = fill(lab)
    crash(log)
    strange = [os.path.join(log.directory, name) for name in ("notes.txt", "00000.log", "x.deleted")]
    for path in strange:
        with open(path, "wb") as file:
            file.write(b"mine")
    log = lab.open(**SETTINGS)
    log.load()
    assert all(os.path.exists(path) for path in strange)


def test_a_preallocated_segment_is_cut_to_its_batches_after_a_crash(lab):
    log = lab.open(preallocate=True, segment_bytes=1 << 20)
    lab.append(log, b"a")
    path = log.load().active.path(".log")
    assert os.path.getsize(path) == 1 << 20
    crash(log)
    log = lab.open(preallocate=True, segment_bytes=1 << 20)
    assert lab.values(log) == [b"a"]
    assert os.path.getsize(path) == len(lab.batch(b"a"))


def test_half_written_small_files_are_removed(lab):
    log = fill(lab)
    crash(log)
    names = ("leader-epoch-checkpoint.tmp", "partition.metadata.tmp", f"{7:020d}.snapshot.tmp")
    for name in (*names, "mine.tmp"):
        Path(log.directory, name).write_bytes(b"half")
    log = lab.open(**SETTINGS)
    log.load()
    left = os.listdir(log.directory)
    assert not any(name in left for name in names)
    assert "mine.tmp" in left


def test_the_largest_timestamp_is_found_again_though_the_time_index_did_not_reach_the_disk(lab):
    settings = {"index_interval_bytes": 100}
    log = lab.open(**settings)
    for number in range(60):
        lab.append(log, b"%02d" % number * 20, timestamp=5000 if number == 20 else 1000 + number)
    log.flush()  # 32 entries and more: the indexes are written
    segment = log.load().active
    assert segment.offset_index.written > 30
    crash(log)
    with open(segment.path(".timeindex"), "r+b") as file:
        file.truncate(12)  # its pages were not among those that the system had brought to the disk
    log = lab.open(ReopenFacts(recovery_point=50), **settings)
    assert log.max_timestamp_offset().offset == 20
    assert log.offset_for_timestamp(2000).offset == 20
    check_indexes(log)


def test_producers_noted_while_their_records_were_cut_off_are_not_believed_later(lab):
    log = lab.open()
    for sequence in range(3):
        lab.append(log, b"v", producer_id=7, producer_epoch=0, base_sequence=sequence)
    flush = log.prepare_flush(snapshot=True)
    log.truncate_to(1)  # on the loop, while the flush waits for its thread
    flush.run()
    for number in range(4):
        lab.append(log, b"other %d" % number)
    crash(log)
    log = lab.open(ReopenFacts(recovery_point=5))
    assert [(entry.producer_id, entry.last_sequence) for entry in log.active_producers] == [(7, 0)]


def test_a_follower_of_a_compacted_log_loses_nothing_in_a_crash(lab):
    log = lab.open(segment_bytes=200)
    for base_offset in (0, 10, 25, 40):
        log.append_as_follower(lab.batch(b"v" * 100, base_offset=base_offset, leader_epoch=0))
    assert len(log.load().segments) > 2
    crash(log)
    log = lab.open(segment_bytes=200)  # it is not known yet that the topic is a compacted one
    assert [record.offset for record in lab.records(log)] == [0, 10, 25, 40]
    assert log.log_end_offset == 41

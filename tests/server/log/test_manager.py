"""A data directory: its lock, its contents, clean stops and starts."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import uuid

import pytest

from headrace.server.log.checkpoints import read_checkpoint, write_checkpoint
from headrace.server.log.config import LogConfig
from headrace.server.log.directory import CLEAN_STOP, SUMMARY, DirectoryInUse
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files
from headrace.server.log.manager import LogManager
from headrace.server.log.segment import Segment
from headrace.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def opened(tmp_path, clock):
    """Opens managers on the same directories; those still open at the end are released."""
    managers = []

    def make(*names: str, files: Files | None = None) -> LogManager:
        environment = Environment(clock=clock, files=files or Files())
        manager = LogManager([str(tmp_path / name) for name in names or ("data",)], environment=environment)
        managers.append(manager)
        manager.open()
        return manager

    yield make
    for manager in managers:
        manager.release()


def test_a_directory_that_another_broker_holds_is_refused_in_one_sentence(opened, tmp_path):
    opened()
    with pytest.raises(DirectoryInUse, match=r"^Data directory .* is held by another broker; .*\.$"):
        opened()
    script = (
        "import sys; from headrace.server.log.manager import LogManager; from headrace.server.log.directory import DirectoryInUse\n"
        "try: LogManager([sys.argv[1]]).open()\n"
        "except DirectoryInUse: print('refused')"
    )
    output = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert output == "refused\n"


def test_logs_come_back_after_a_clean_stop_without_being_touched(opened, lab, monkeypatch):
    manager = opened()
    ids = {}
    for partition in range(3):
        ids[partition] = uuid.uuid4()
        log = manager.create("orders", partition, LogConfig(), ids[partition])
        for number in range(partition + 1):
            lab.append(log, b"%d" % number)
        log.set_high_watermark(partition)
    manager.close()

    def refuse(*_args, **_named):
        raise AssertionError("a log was opened")

    with monkeypatch.context() as patch:
        patch.setattr(Segment, "__init__", refuse)
        manager = opened()
        for partition in range(3):
            log = manager.get("orders", partition)
            assert not log.is_loaded
            assert (log.log_start_offset, log.log_end_offset) == (0, partition + 1)
            assert log.high_watermark == partition
            assert manager.topic_id_of(log) == ids[partition]
    assert lab.values(manager.get("orders", 2)) == [b"0", b"1", b"2"]


def test_a_log_that_is_not_touched_for_many_restarts_stays_known(opened, lab):
    manager = opened()
    lab.append(manager.create("t", 0, LogConfig()), b"a")
    for _ in range(3):
        manager.close()
        manager = opened()
    assert not manager.get("t", 0).is_loaded
    assert lab.values(manager.get("t", 0)) == [b"a"]


def test_the_clean_stop_mark_is_gone_while_a_broker_runs(opened, tmp_path, lab):
    manager = opened()
    lab.append(manager.create("t", 0, LogConfig()), b"a")
    manager.close()
    assert (tmp_path / "data" / CLEAN_STOP).exists()
    manager = opened()
    assert manager.directories[0].clean
    assert not (tmp_path / "data" / CLEAN_STOP).exists()
    assert not (tmp_path / "data" / SUMMARY).exists()
    manager.release()
    manager = opened()
    assert not manager.directories[0].clean
    assert manager.get("t", 0).is_loaded


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_damaged_summary_only_costs_time(opened, tmp_path, lab, damage):
    manager = opened()
    lab.append(manager.create("t", 0, LogConfig()), b"a")
    manager.close()
    path = tmp_path / "data" / SUMMARY
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-5] if damage == "cut" else data.replace(b"version", b"Version"))
    manager = opened()
    assert manager.get("t", 0).log_end_offset == 1
    assert lab.values(manager.get("t", 0)) == [b"a"]


def test_a_log_that_could_not_be_closed_leaves_no_clean_stop_mark(opened, tmp_path, lab):
    manager = opened()
    log = manager.create("t", 0, LogConfig())
    lab.append(log, b"a")
    log.take_offline("tests say so")
    manager.close()
    assert not (tmp_path / "data" / CLEAN_STOP).exists()
    assert lab.values(opened().get("t", 0)) == [b"a"]


def test_folders_that_hold_no_log_are_left_alone(opened, tmp_path):
    mine = tmp_path / "data" / "my-project-2"
    mine.mkdir(parents=True)
    (mine / "thesis.txt").write_text("precious")
    (tmp_path / "data" / "notes").mkdir()
    (tmp_path / "data" / "x-delete").mkdir()
    kraft = tmp_path / "data" / "__cluster_metadata-0"
    kraft.mkdir()
    (kraft / f"{0:020d}.log").write_bytes(b"Apache Kafka's")
    stray = tmp_path / "data" / "old-3.0123-stray"
    stray.mkdir()
    manager = opened()
    assert manager.logs == {}
    assert manager.environment.trash.take_due(10**15) == []
    manager.close()
    assert (mine / "thesis.txt").read_text() == "precious"
    assert stray.exists()
    assert (kraft / f"{0:020d}.log").read_bytes() == b"Apache Kafka's"


def test_a_deleted_partition_is_gone_at_once_and_its_files_after_the_delay(opened, tmp_path, lab, clock):
    manager = opened()
    log = manager.create("t-x", 0, LogConfig(file_delete_delay_ms=1000))
    lab.append(log, b"a")
    piece = log.read(0, 1000)
    manager.delete("t-x", 0)
    assert manager.get("t-x", 0) is None
    with pytest.raises(KafkaError) as caught:
        lab.append(log, b"b")
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    names = [path.name for path in (tmp_path / "data").iterdir() if path.is_dir()]
    assert len(names) == 1
    assert names[0].startswith("t-x-0.")
    assert names[0].endswith("-delete")
    assert manager.environment.trash.take_due(clock.now_ms() + 999) == []
    again = manager.create("t-x", 0, LogConfig())
    assert lab.append(again, b"new") == 0
    assert len(bytes(piece.read())) == piece.size


def test_a_deletion_that_a_crash_interrupted_is_finished_at_the_next_start(opened, tmp_path, lab, clock):
    manager = opened()
    lab.append(manager.create("t", 0, LogConfig()), b"a")
    manager.delete("t", 0)
    manager.release()
    manager = opened()
    (path,) = manager.environment.trash.take_due(clock.now_ms())
    assert path.endswith("-delete")
    assert manager.logs == {}


def test_the_name_of_a_deleted_partition_fits_a_file_name(opened, tmp_path):
    manager = opened()
    topic = "t" * 249
    manager.create(topic, 0, LogConfig())
    manager.delete(topic, 0)
    (name,) = [path.name for path in (tmp_path / "data").iterdir() if path.is_dir()]
    assert len(name) <= 255


def test_partitions_spread_over_directories_and_a_failed_one_does_not_stop_the_others(opened, tmp_path, lab):
    manager = opened("one", "two")
    for partition in range(6):
        lab.append(manager.create("t", partition, LogConfig()), b"a")
    one, two = manager.directories
    assert len(manager.logs_in(one)) == len(manager.logs_in(two)) == 3
    manager.directory_failed(one, OSError(errno.EIO, "Input/output error"))
    for log in manager.logs.values():
        if manager.directory_of(log) is one:
            with pytest.raises(KafkaError):
                log.read(0, 10)
        else:
            assert lab.append(log, b"b") == 1
    assert manager.directory_of(manager.create("new", 0, LogConfig())) is two
    manager.close()
    assert not (tmp_path / "one" / CLEAN_STOP).exists()
    assert (tmp_path / "two" / CLEAN_STOP).exists()


def test_a_directory_that_cannot_be_made_is_offline_from_the_start(opened, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    manager = opened("file/inside", "good")
    assert [directory.offline_reason is None for directory in manager.directories] == [False, True]
    with pytest.raises(KafkaError, match="No data directory can be used"):
        opened("file/inside")


def test_checkpoints_have_kafkas_format(tmp_path):
    offsets = {("a-b", 0): 5, ("topic", 12): 2**40}
    write_checkpoint(Files(), str(tmp_path), "checkpoint", offsets)
    assert (tmp_path / "checkpoint").read_text() == "0\n2\na-b 0 5\ntopic 12 1099511627776\n"
    assert read_checkpoint(Files(), str(tmp_path), "checkpoint") == offsets
    for damage in ("", "1\n0\n", "0\nx\n", "0\n1\nbroken\n", "\xff\xff"):
        (tmp_path / "checkpoint").write_text(damage)
        assert read_checkpoint(Files(), str(tmp_path), "checkpoint") == {}


def test_meta_properties_are_kept(opened):
    directory = opened().directories[0]
    assert directory.read_meta() == {}
    directory.write_meta({"version": "1", "node.id": "3", "cluster.id": "abc=="})
    assert directory.read_meta() == {"version": "1", "node.id": "3", "cluster.id": "abc=="}


def test_partition_metadata_names_the_topic(opened, tmp_path):
    manager = opened()
    topic_id = uuid.UUID(int=1)
    manager.create("t", 0, LogConfig(), topic_id)
    text = (tmp_path / "data" / "t-0" / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    manager.release()
    manager = opened()
    assert manager.topic_id_of(manager.get("t", 0)) == topic_id


def test_few_files_stay_open_however_many_partitions_are_used(opened, lab):
    manager = opened()
    manager.environment.pool.limit = 10
    logs = [manager.create("t", partition, LogConfig()) for partition in range(50)]
    for _ in range(3):
        for log in logs:
            lab.append(log, b"x")
            lab.values(log)
    assert manager.environment.pool.open_count <= 10
    assert len([fd for fd in os.listdir("/proc/self/fd") if _points_into(fd, manager)]) <= 12


def _points_into(fd: str, manager: LogManager) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith(manager.directories[0].path)
    except OSError:
        return False

"""A move whose last step the disk refuses: the replica stays where it is, and nothing is left of the copy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files
from headrace.server.log.manager import LogManager
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.records import BatchBuilder


class RefusingFiles(Files):
    """Does not let a copy take the name of its log."""

    __slots__ = ()

    def rename(self, source: str, target: str) -> None:
        if source.endswith("-future") and not target.endswith("-delete"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), source)
        super().rename(source, target)


def batch() -> memoryview:
    builder = BatchBuilder()
    builder.append(0, b"key", b"value")
    return memoryview(builder.build())


def test_a_copy_that_cannot_take_its_place_is_given_up(tmp_path: Path) -> None:
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    manager = LogManager(paths, environment=Environment(RefusingFiles()))
    manager.open()
    log = manager.create("orders", 0, LogConfig())
    log.append_as_leader(batch(), leader_epoch=0)
    source = manager.directory_of(log)
    target = next(each for each in manager.directories if each is not source)
    copy = manager.futures.create(log, target)
    copy.append_as_follower(memoryview(log.read(0, 1 << 20).read()))
    manager.futures.mark_finished(copy)
    with pytest.raises(KafkaError) as refused:
        manager.put_into_service(log, copy)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.directory_of(log) is source
    assert not manager.futures.logs
    assert not [name for name in os.listdir(target.path) if name.endswith("-future")]
    log.append_as_leader(batch(), leader_epoch=0)
    manager.close()
    again = LogManager(paths)
    again.open()
    found = again.get("orders", 0)
    assert found is not None
    assert found.log_end_offset == 2
    again.close()

"""The file of leader epochs is replaced by a rename: a flush makes both the contents and the rename durable."""

from __future__ import annotations

import os

from headrace.server.log.epochs import FILE_NAME
from headrace.server.log.files import Files


class RenamesOnDisk(Files):
    """Knows which renames a crash of the machine would undo."""

    __slots__ = ("volatile",)

    def __init__(self):
        self.volatile = set()

    def rename(self, source, target):
        super().rename(source, target)
        self.volatile.add(target)

    def sync_directory(self, path):
        super().sync_directory(path)
        self.volatile = {target for target in self.volatile if os.path.dirname(target) != path}


def test_a_flush_brings_a_new_epoch_to_the_disk_for_good(lab):
    lab.environment.files = files = RenamesOnDisk()
    log = lab.open()
    for epoch in range(3):
        lab.append(log, b"v", leader_epoch=epoch)
        assert os.path.join(log.directory, FILE_NAME) in files.volatile
        log.flush()
        assert files.volatile == set()

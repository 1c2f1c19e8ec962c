"""Files going out of or into service: what their suffixes mean, and finishing what a crash interrupted.

`.deleted` files are out of service and wait to be removed; `.cleaned` files are being written by the
cleaner; `.swap` files are complete and about to take the place of the segments they were made from.
"""

from __future__ import annotations

import logging
import os

from headrace.server.log.environment import Environment
from headrace.server.log.epochs import FILE_NAME as EPOCHS_FILE
from headrace.server.log.files import TEMPORARY
from headrace.server.log.metadata import FILE_NAME as METADATA_FILE
from headrace.server.log.segment import Segment
from headrace.server.log.snapshots import SUFFIX

logger = logging.getLogger(__name__)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
INDEXES = (".index", ".timeindex", ".txnindex")


def offset_of(name: str) -> int | None:
    """The base offset in the name of a segment's file."""
    digits = name[:20]
    return int(digits) if len(digits) == 20 and digits.isascii() and digits.isdigit() else None


def discard(environment: Environment, segment: Segment, *, delay_ms: int) -> None:
    """Take a segment's files out of service now and delete them later."""
    segment.close()
    segment.rename(DELETED)
    due = environment.clock.now_ms() + delay_ms
    for kind in (".log", *INDEXES):
        environment.trash.put(segment.path(kind), due)


def finish_interrupted(environment: Environment, directory: str, names: dict[str, int]) -> dict[str, int]:
    """Remove leftovers of deletions and compactions, and finish a compaction that had reached its swap."""
    files = environment.files

    def remove(name: str) -> None:
        files.remove(os.path.join(directory, name))
        names.pop(name, None)

    for name in [name for name in names if name.endswith(TEMPORARY) and _is_ours(name[: -len(TEMPORARY)])]:
        remove(name)
    cleaned = [name for name in names if name.endswith(CLEANED) and offset_of(name) is not None]
    unfinished = {name[:20] for name in cleaned}
    for name in [
        *cleaned,
        *(name for name in names if name.endswith(DELETED) and offset_of(name) is not None),
    ]:
        remove(name)
    swaps = [name for name in names if name.endswith(SWAP) and offset_of(name) is not None]
    # A swap that stopped before any original was renamed is undone.
    void = {stem for stem in unfinished if stem + ".log" in names and stem + ".log" + SWAP in names}
    for name in [name for name in swaps if name[:20] in void]:
        remove(name)
        swaps.remove(name)
    logs = sorted(offset_of(name) or 0 for name in swaps if name.endswith(".log" + SWAP))
    if logs:
        last = Segment(
            environment,
            directory,
            logs[-1],
            created_ms=0,
            suffix=SWAP,
            size=names[f"{logs[-1]:020d}.log{SWAP}"],
        )
        upper = max((header.next_offset for _, header in last.headers(0)), default=logs[-1] + 1)
        for name in list(names):
            offset = offset_of(name)
            if offset is not None and logs[0] <= offset < upper and not name.endswith((SWAP, SUFFIX)):
                logger.info(
                    "%s was compacted before the last stop; removing it.", os.path.join(directory, name)
                )
                remove(name)
    for name in swaps:
        target = name[: -len(SWAP)]
        files.rename(os.path.join(directory, name), os.path.join(directory, target))
        names[target] = names.pop(name)
    return names


def _is_ours(name: str) -> bool:
    return name in (EPOCHS_FILE, METADATA_FILE) or (name.endswith(SUFFIX) and offset_of(name) is not None)

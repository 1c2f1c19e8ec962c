"""Small files of state are replaced whole: a process killed at any moment leaves the old content or the new one.

The broker has a door of its own to its files (`server/log/files.py`); this is for everything that runs beside it.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def replace_file(path: Path, text: str, *, durable: bool = True, mode: int = 0o666) -> None:
    """Put ``text`` in the place of what the file held. ``durable`` also survives a power cut; do without it for
    numbers that are written again every moment.
    """
    # A name of its own, so that two writers never rename each other's draft.
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The Python process in which Spark runs task after task."""

from __future__ import annotations

import gc
import itertools

_tasks = itertools.count()


def settle() -> None:
    """Keep the modules loaded by now out of garbage collection.

    Spark collects after every task. Over all of pandas, pyarrow and pyspark that takes tens of milliseconds, as long as
    a small micro-batch, and the next task waits for it. The first task of a process loads some of them, so that the
    second finds them all; later ones would only keep what is garbage.
    """
    if next(_tasks) < 2:
        gc.freeze()

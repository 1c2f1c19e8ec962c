"""Drawing a table that renews itself: whole, also when Ctrl-C comes in the middle of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


def redraw(live: Live, shown: RenderableType) -> None:
    with _undisturbed():
        live.update(shown, refresh=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals are heeded afterwards: rich, interrupted while it writes, would write the same table once more."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])

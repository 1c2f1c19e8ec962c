"""Running connectors from a program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.streaming.masters import LOCAL

if TYPE_CHECKING:
    from headrace.connectors.state import Status
    from headrace.streaming.supervision import Run


def run(
    *connectors: str | Path | Mapping[str, Any],
    bootstrap: str | None = None,
    once: bool = False,
    reset: bool = False,
    master: str = LOCAL,
    settings: Mapping[str, str] | None = None,
    state: str | Path | None = None,
) -> Run[Status]:
    """Check connectors, start them, and look after them in a thread; returns when all are started.

    Each is a file, or a mapping with what a file would hold and a ``name``. ``bootstrap`` stands in for a missing
    ``topic.bootstrap``. ``once`` moves what is there now and ends; ``reset`` forgets the checkpoints. Spark is started on
    ``master`` with ``settings`` when a connector needs it; a session that the program has already is used as it is. States
    are kept in ``state``, by default in ``.headrace/connect`` beside a file or in the current directory.

    Raises ConfigError for what is wrong with a declaration, and another StreamingError for what keeps one from starting.
    """
    from headrace.connectors.config import declare, load
    from headrace.connectors.errors import ConnectorError
    from headrace.connectors.work import Connectors
    from headrace.streaming.supervision import Run

    if not connectors:
        raise ConnectorError("Name at least one connector.")
    declarations = [
        declare(dict(each), default_name="", bootstrap=bootstrap)
        if isinstance(each, Mapping)
        else load(Path(each), bootstrap=bootstrap)
        for each in connectors
    ]
    return Run(
        Connectors(
            declarations,
            once=once,
            reset=reset,
            master=master,
            settings=settings,
            state=None if state is None else Path(state),
        )
    ).in_background()

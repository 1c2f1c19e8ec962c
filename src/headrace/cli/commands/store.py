"""`headrace store`: move a cluster's facts between a data directory and ZooKeeper."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.server.cluster.store import Store

app = options.command_app("Move a cluster's facts between a data directory and ZooKeeper.")

_ADDRESS = re.compile(r"[^/]+:\d+(,[^/]+:\d+)*(/.*)?")
SESSION_SECONDS = 10.0

Place = Annotated[str, typer.Argument(metavar="DIR|HOST:PORT[,…][/CHROOT]")]


@app.callback()
def store() -> None:
    """Topics, settings, leaders: what a cluster knows beside its records."""


@app.command(
    epilog=options.examples(
        "headrace store copy ./data zk1:2181,zk2:2181,zk3:2181/headrace",
        "headrace store copy zk1:2181/headrace ./data",
    )
)
def copy(source: Place, target: Place) -> None:
    """Copy the facts of a stopped cluster into an empty store; the source stays as it is.

    DIR is the --data of `headrace up`. The brokers' data stays where it is: start each broker on its own part of it
    afterwards, with the same id (docs/deploy.md).
    """
    import logging

    from headrace.server.cluster.store import StoreError

    logging.getLogger("headrace.kazoo").setLevel(logging.ERROR)  # it reports each try; we, the outcome
    if _is_address(source) == _is_address(target):
        raise Misuse("Name a data directory and a ZooKeeper address (HOST:PORT[,…][/CHROOT]).")
    try:
        changes = asyncio.run(_copy(source, target))
    except StoreError as error:
        raise Failure(str(error)) from None
    output.note(f"{target} holds the cluster as of change {changes}; {source} must not be started again.")


def _is_address(place: str) -> bool:
    return _ADDRESS.fullmatch(place) is not None


async def _copy(source: str, target: str) -> int:
    from headrace.server.cluster.copy import copy_facts

    opened, close_source = await _open(source, must_exist=True)
    try:
        other, close_target = await _open(target)
        try:
            return await copy_facts(opened, other)
        finally:
            await close_target()
    finally:
        await close_source()


async def _open(place: str, must_exist: bool = False) -> tuple[Store, Callable[[], Awaitable[None]]]:
    from headrace.clock import SystemClock
    from headrace.server.cluster.embedded import FILE_NAME, EmbeddedStore
    from headrace.server.cluster.store import StoreError

    if _is_address(place):
        try:
            from headrace.server.cluster.zookeeper import ZooKeeperStore
        except ImportError:
            raise Failure("ZooKeeper needs kazoo: pip install 'headrace[zookeeper]'.") from None
        session = await ZooKeeperStore.open(place, SESSION_SECONDS, SESSION_SECONDS, SystemClock())
        return session, session.close
    file = Path(place) / FILE_NAME
    if must_exist and not file.is_file():
        raise StoreError(f"{file} is not there; name the --data directory of the cluster.")
    file.parent.mkdir(parents=True, exist_ok=True)
    embedded = await EmbeddedStore.open(file)
    return embedded.connect(), embedded.close

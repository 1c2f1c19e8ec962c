"""`headrace store`: move a cluster's facts between a data directory and ZooKeeper."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Exit, Failure, Misuse
from headrace.cli.parsing import properties
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.server.cluster.store import Store
    from headrace.server.cluster.zookeeper_access import ZooKeeperAccess

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
        "headrace store copy ./data zk1:2182/headrace --config server.properties",
    )
)
def copy(
    source: Place,
    target: Place,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A broker's server.properties: how to get into a secured ZooKeeper."
        ),
    ] = None,
) -> None:
    """Copy the facts of a stopped cluster into an empty store; the source stays as it is.

    DIR is the --data of `headrace up`. The brokers' data stays where it is: start each broker on its own part of it
    afterwards, with the same id (docs/deploy.md).

    Of --config, the settings of TLS and login count (zookeeper.ssl.*, headrace.zookeeper.*, zookeeper.set.acl): give the file that
    the brokers are started with.
    """
    import logging

    from headrace.server.cluster.store import StoreError

    logging.getLogger("headrace.kazoo").setLevel(logging.ERROR)  # it reports each try; we, the outcome
    if _is_address(source) == _is_address(target):
        raise Misuse("Name a data directory and a ZooKeeper address (HOST:PORT[,…][/CHROOT]).")
    try:
        changes = asyncio.run(_copy(source, target, config))
    except StoreError as error:
        raise Failure(str(error)) from None
    output.note(f"{target} holds the cluster as of change {changes}; {source} must not be started again.")


def _is_address(place: str) -> bool:
    return _ADDRESS.fullmatch(place) is not None


async def _copy(source: str, target: str, config: Path | None) -> int:
    from headrace.server.cluster.copy import copy_facts

    opened, close_source = await _open(source, config, must_exist=True)
    try:
        other, close_target = await _open(target, config)
        try:
            return await copy_facts(opened, other)
        finally:
            await close_target()
    finally:
        await close_source()


async def _open(
    place: str, config: Path | None, must_exist: bool = False
) -> tuple[Store, Callable[[], Awaitable[None]]]:
    from headrace.clock import SystemClock
    from headrace.server.cluster.embedded import FILE_NAME, EmbeddedStore
    from headrace.server.cluster.store import StoreError

    if _is_address(place):
        try:
            from headrace.server.cluster.zookeeper import ZooKeeperStore
        except ImportError:
            raise Failure("ZooKeeper needs kazoo: pip install 'headrace[zookeeper]'.") from None
        access = _access(config)
        session = await ZooKeeperStore.open(place, SESSION_SECONDS, SESSION_SECONDS, SystemClock(), access)
        return session, session.close
    file = Path(place) / FILE_NAME
    if must_exist and not file.is_file():
        raise StoreError(f"{file} is not there; name the --data directory of the cluster.")
    file.parent.mkdir(parents=True, exist_ok=True)
    embedded = await EmbeddedStore.open(file)
    return embedded.connect(), embedded.close


def _access(config: Path | None) -> ZooKeeperAccess:
    """The way into ZooKeeper that a broker with this file takes."""
    from headrace.server.cluster.zookeeper_access import OPEN, ZooKeeperAccess
    from headrace.server.config.broker import BrokerConfig
    from headrace.server.config.definition import ConfigError

    if config is None:
        return OPEN
    given, places = properties.load_with_places(config)
    try:
        return ZooKeeperAccess.of(BrokerConfig.load({"log.dirs": "data", **given}, {}, places))
    except ConfigError as error:
        raise Failure(str(error), Exit.USAGE) from None

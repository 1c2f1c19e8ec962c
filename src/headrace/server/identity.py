"""A broker's identity: meta.properties in each of its data directories ties them to one broker of one cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace.server.cluster.ids import format_id, random_id
from headrace.server.config.broker import BrokerConfig
from headrace.server.log.directory import META
from headrace.server.log.manager import LogManager

FIRST_BROKER = 1
BOOT_ID = "headrace.boot.id"
BROKER_EPOCH = "headrace.broker.epoch"

log = logging.getLogger(__name__)


class StartError(Exception):
    """Why a broker cannot start, in one sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this broker is, as its directories say."""

    broker_id: int
    cluster_id: str | None
    """None before the broker first joined a cluster."""
    directory_id: str
    """The id of the first directory: it identifies the broker across restarts."""
    new: bool
    """A data directory is empty, so data that this broker held before is lost."""
    rebooted: bool = False
    """The machine rebooted since this broker last started: data that was not synced is lost."""
    previous_epoch: int = -1
    """The oldest epoch in which this broker last used one of the directories; -1 when one does not say."""

    def reason_to_doubt_metadata(self, broker_epoch: int) -> str | None:
        """Why the metadata may be missing topics that the directories hold; None when there is no reason to think so."""
        if self.cluster_id is None or self.previous_epoch < 0:
            return "a data directory was not used by this cluster before"
        if broker_epoch <= self.previous_epoch:
            return "the store is older than the data, as one restored from a backup"
        return None


def read_identity(logs: LogManager, config: BrokerConfig) -> Identity:
    """The identity in the data directories, or the one in the settings for new ones; StartError when they disagree."""
    broker_id, cluster_id, directory_id, new = config.node_id, None, None, False
    rebooted = False
    epochs = []
    for directory in logs.online_directories:
        meta = directory.read_meta()
        stored_id = meta.get("node.id") or meta.get("broker.id")
        if stored_id is None:
            _refuse_supervised_data(Path(directory.path))
            new = True
            continue
        if broker_id is not None and int(stored_id) != broker_id:
            raise StartError(
                f"{directory.path} belongs to broker {stored_id}, not {broker_id}; set node.id={stored_id} or "
                "choose another data directory."
            )
        broker_id = int(stored_id)
        if cluster_id is not None and meta.get("cluster.id") not in (None, cluster_id):
            raise StartError(f"{directory.path} belongs to another cluster than the other data directories.")
        cluster_id = meta.get("cluster.id") or cluster_id
        directory_id = directory_id or meta.get("directory.id")
        epochs.append(int(meta.get(BROKER_EPOCH, -1)))
        rebooted = rebooted or meta.get(BOOT_ID) not in (None, directory.files.boot_id())
    return Identity(
        FIRST_BROKER if broker_id is None else broker_id,
        cluster_id,
        directory_id or format_id(random_id()),
        new,
        rebooted,
        min(epochs, default=-1),
    )


def _refuse_supervised_data(directory: Path) -> None:
    """A standalone broker in a supervisor's directory would replace one of its brokers, without its records."""
    brokers = sorted(path.parent.name for path in directory.glob(f"broker-*/{META}"))
    if brokers:
        raise StartError(
            f"{directory} holds the data of several brokers ({', '.join(brokers)}); start them with --brokers "
            f"{len(brokers)}, or choose another data directory."
        )


def refuse_standalone_data(directory: Path) -> None:
    """The brokers of a supervisor have their own directories, and would not see the records in this one."""
    if (directory / META).exists():
        raise StartError(
            f"{directory} holds the data of a broker that ran alone; move all but cluster.db into "
            f"{directory / 'broker-1'} to continue with several, or choose another data directory."
        )


def confirm_identity(logs: LogManager, identity: Identity, cluster_id: str, broker_epoch: int) -> None:
    """Write the confirmed identity to the directories, or refuse data of another cluster."""
    if identity.cluster_id not in (None, cluster_id):
        raise StartError(
            f"The data belongs to cluster {identity.cluster_id}, but the store to {cluster_id}; point the broker "
            "at its own cluster or choose another data directory."
        )
    for number, directory in enumerate(logs.online_directories):
        meta = directory.read_meta()
        own = identity.directory_id if number == 0 else format_id(random_id())
        certain = {
            "version": "1",
            "cluster.id": cluster_id,
            "node.id": str(identity.broker_id),
            "directory.id": meta.get("directory.id", own),
            BROKER_EPOCH: str(broker_epoch),
        }
        boot_id = directory.files.boot_id()
        if boot_id is not None:
            certain[BOOT_ID] = boot_id
        if {name: meta.get(name) for name in certain} != certain:
            directory.write_meta({**meta, **certain})


def note_registration(logs: LogManager, current_epoch: Callable[[], int]) -> None:
    """The broker has a new epoch. If that cannot be written, its next start counts as one with an old copy of the data.

    Runs in a thread, perhaps beside an earlier one that is late: each writes the epoch that is current at that moment.
    """
    for directory in logs.online_directories:
        try:
            directory.update_meta(lambda meta: {**meta, BROKER_EPOCH: str(current_epoch())})
        except OSError as error:
            log.warning("the epoch of this broker cannot be kept in %s: %s", directory.path, error)

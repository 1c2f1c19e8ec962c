"""A new cluster's first facts, written before any broker has started: its first users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.server.cluster import features
from headrace.server.cluster.changes import Change
from headrace.server.cluster.embedded import FILE_NAME, EmbeddedStore
from headrace.server.cluster.policy_changes import FeatureChanged, ScramChanged
from headrace.server.cluster.scram import missing_decoys
from headrace.server.cluster.sequence import CONTROLLER_EPOCH, append, prepare_paths, read_head, split
from headrace.server.cluster.store import StoreError
from headrace.server.security.scram import store as stored
from headrace.wire.sasl.scram import ScramCredential

Credentials = Mapping[tuple[str, str], ScramCredential]
"""By user and mechanism."""


def refuse_an_old_cluster(data: Path) -> None:
    if (data / FILE_NAME).exists():
        raise StoreError(
            f"{data} holds a cluster already; add users to it with 'headrace users add', or choose another data directory."
        )


async def begin_cluster(data: Path, users: Credentials) -> None:
    """Make the store in a data directory, which must be there. StoreError when a cluster is in it."""
    refuse_an_old_cluster(data)
    embedded = await EmbeddedStore.open(data / FILE_NAME)
    session = embedded.connect()
    try:
        await prepare_paths(session)
        found = await session.get(CONTROLLER_EPOCH)
        assert found is not None
        await append(session, await read_head(session), found[1].version, list(split(_first_changes(users))))
    finally:
        await session.close()
        await embedded.close()


def _first_changes(users: Credentials) -> Sequence[Change]:
    credentials: list[Change] = [
        ScramChanged(user, mechanism, stored(credential)) for (user, mechanism), credential in users.items()
    ]
    # No older broker has a part in a new cluster.
    levels: list[Change] = [
        FeatureChanged(name, features.SUPPORTED[name][1]) for name in sorted(features.RAISED_BY_HAND)
    ]
    return [*levels, *missing_decoys({}, credentials), *credentials]

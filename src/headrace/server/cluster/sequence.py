"""The change sequence in the store: numbered changes, a snapshot now and then, and a head that says how far it goes.

    /metadata/head              {"offset": last change, "snapshot": last change in the snapshot, "chunks": its pieces}
    /metadata/changes/<offset>  one change: a list of image changes that belong together
    /metadata/snapshots/<offset>-<chunk>

The head changes in the same transaction as every append, so a reader that watches it misses nothing, and a writer whose epoch is
over, or that has not seen the latest change, writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.server.cluster.change_codec import decode_changes, encode_changes
from headrace.server.cluster.changes import Change
from headrace.server.cluster.differences import apply_changes, describe_image
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.store import (
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Op,
    SetData,
    Stat,
    Store,
    Watch,
    ensure,
)

HEAD = "/metadata/head"
CHANGES = "/metadata/changes"
SNAPSHOTS = "/metadata/snapshots"
CONTROLLER_EPOCH = "/controller_epoch"

SNAPSHOT_EVERY = 256
KEPT_BEFORE_SNAPSHOT = 64
"""Changes kept behind a snapshot, so that a broker slightly behind need not read the snapshot."""

CHUNK_BYTES = 512 * 1024
"""ZooKeeper refuses nodes and transactions of a megabyte or more."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where the sequence ends, and which snapshot it continues."""

    offset: int = -1
    snapshot: int = -1
    chunks: int = 0
    version: int = 0
    """The version of the head's node."""

    def encode(self) -> bytes:
        return json.dumps({"offset": self.offset, "snapshot": self.snapshot, "chunks": self.chunks}).encode()

    @classmethod
    def decode(cls, data: bytes, version: int) -> Head:
        fields = json.loads(data)
        return cls(fields["offset"], fields["snapshot"], fields["chunks"], version)


def change_path(offset: int) -> str:
    return f"{CHANGES}/{offset:016d}"


def snapshot_path(offset: int, chunk: int) -> str:
    return f"{SNAPSHOTS}/{offset:016d}-{chunk:04d}"


async def prepare_paths(store: Store) -> None:
    """Create the nodes that a new store needs."""
    if await store.get(HEAD) is not None:
        return
    paths = ["/brokers", "/brokers/ids", "/metadata", CHANGES, SNAPSHOTS, CONTROLLER_EPOCH]
    try:
        await store.commit([*map(Create, paths), Create(HEAD, Head().encode())])
    except NodeExistsError:
        # Another broker is creating them too, or someone created some of them by hand.
        await ensure(store, paths)
        with contextlib.suppress(NodeExistsError):
            await store.commit([Create(HEAD, Head().encode())])


async def read_head(store: Store, watch: Watch | None = None) -> Head:
    found = await store.get(HEAD, watch)
    if found is None:
        return Head()
    data, stat = found
    return Head.decode(data, stat.version)


Steps = list[tuple[int, list[Change]]]
"""Changes with their numbers."""


async def read_from(store: Store, image: MetadataImage, head: Head) -> tuple[MetadataImage, Steps]:
    """What leads from `image` to `head`: the base to start from, and the changes after it.

    The base is `image`, or the snapshot when `image` is too old. NoNodeError means that something was trimmed while it was being
    read: read the head again.
    """
    if image.offset < head.snapshot - KEPT_BEFORE_SNAPSHOT or (image.offset < 0 <= head.snapshot):
        image = await _read_snapshot(store, head)
    steps: Steps = []
    for offset in range(image.offset + 1, head.offset + 1):
        found = await store.get(change_path(offset))
        if found is None:
            raise NoNodeError(0, change_path(offset))
        steps.append((offset, decode_changes(found[0])))
    return image, steps


async def load(store: Store, image: MetadataImage) -> tuple[MetadataImage, Head]:
    """The latest image, read on from `image`."""
    while True:
        head = await read_head(store)
        try:
            base, steps = await read_from(store, image, head)
        except NoNodeError:
            continue
        if not steps:
            return base, head
        # All at once: building every image in between would copy the tables each time.
        return apply_changes(base, head.offset, (change for _, changes in steps for change in changes)), head


async def _read_snapshot(store: Store, head: Head) -> MetadataImage:
    pieces: list[bytes] = []
    for chunk in range(head.chunks):
        path = snapshot_path(head.snapshot, chunk)
        found = await store.get(path)
        if found is None:
            raise NoNodeError(0, path)
        pieces.append(found[0])
    return apply_changes(MetadataImage(), head.snapshot, decode_changes(b"".join(pieces)))


def split(changes: Sequence[Change]) -> Iterable[bytes]:
    """`changes` encoded in as many pieces as the store's size limit requires: nearly always one."""
    data = encode_changes(changes)
    if len(data) <= CHUNK_BYTES or len(changes) == 1:
        yield data
        return
    middle = len(changes) // 2
    yield from split(changes[:middle])
    yield from split(changes[middle:])


async def append(store: Store, head: Head, epoch_version: int, pieces: Sequence[bytes]) -> Head:
    """Append changes after `head`; ConflictError when this controller's epoch no longer holds.

    They go in one transaction if its size allows.
    """
    position = 0
    while position < len(pieces):
        following, size = head, 0
        ops: list[Op] = []
        while position < len(pieces) and (not ops or size + len(pieces[position]) <= CHUNK_BYTES):
            following = Head(following.offset + 1, head.snapshot, head.chunks)
            ops.append(Create(change_path(following.offset), pieces[position]))
            size += len(pieces[position])
            position += 1
        results = await store.commit(
            [Check(CONTROLLER_EPOCH, epoch_version), *ops, SetData(HEAD, following.encode(), head.version)]
        )
        head = _with_version(following, results[-1])
    return head


async def write_snapshot(store: Store, head: Head, epoch_version: int, image: MetadataImage) -> Head:
    """Write `image` as a snapshot and delete the changes it replaces."""
    assert image.offset == head.offset
    # An image never changes, so a thread can encode it while the loop goes on.
    data = await asyncio.to_thread(lambda: encode_changes(describe_image(image)))
    chunks = [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]
    check = Check(CONTROLLER_EPOCH, epoch_version)
    for number, chunk in enumerate(chunks):
        await store.commit([check, Create(snapshot_path(image.offset, number), chunk)])
    following = Head(head.offset, image.offset, len(chunks))
    _, stat = await store.commit([check, SetData(HEAD, following.encode(), head.version)])
    stale: list[Op] = [
        Delete(f"{SNAPSHOTS}/{name}")
        for name in await store.children(SNAPSHOTS)
        if not name.startswith(f"{image.offset:016d}-")
    ]
    stale += [
        Delete(f"{CHANGES}/{name}")
        for name in await store.children(CHANGES)
        if int(name) <= image.offset - KEPT_BEFORE_SNAPSHOT
    ]
    for start in range(0, len(stale), 500):
        await store.commit([check, *stale[start : start + 500]])
    return _with_version(following, stat)


def _with_version(head: Head, stat: Stat | None) -> Head:
    assert stat is not None
    return Head(head.offset, head.snapshot, head.chunks, stat.version)

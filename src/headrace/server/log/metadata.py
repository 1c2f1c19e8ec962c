"""partition.metadata: which topic, by id, a directory belongs to."""

from __future__ import annotations

import base64
import contextlib
import os
import uuid

from headrace.server.log.files import Files

FILE_NAME = "partition.metadata"


def encode_uuid(value: uuid.UUID) -> str:
    """An id as Kafka writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def write_partition_metadata(files: Files, directory: str, topic_id: uuid.UUID) -> None:
    contents = f"version: 0\ntopic_id: {encode_uuid(topic_id)}"
    files.write_whole(os.path.join(directory, FILE_NAME), contents.encode(), sync=False)


def sync_partition_metadata(files: Files, directory: str) -> None:
    """Bring it to the disk: a log whose file was torn by a power cut would count as another topic's, and be removed."""
    with contextlib.suppress(FileNotFoundError):
        files.open(os.path.join(directory, FILE_NAME)).sync()


def read_partition_metadata(files: Files, directory: str) -> uuid.UUID | None:
    """None when there is no such file or it makes no sense."""
    try:
        text = files.read_whole(os.path.join(directory, FILE_NAME)).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        if name.strip() == "topic_id":
            try:
                return decode_uuid(value.strip())
            except ValueError:
                return None
    return None

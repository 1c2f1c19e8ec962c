"""Assignments of replicas: in the JSON that kafka-reassign-partitions.sh reads and writes, and on a command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.cli.failure import Failure

Partition = tuple[str, int]
Assignment = dict[Partition, list[int]]

ANY = "any"
"""In place of a directory: wherever the broker likes."""

_FORM = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}'


def as_json(
    assignment: Mapping[Partition, Sequence[int]],
    directories: Mapping[tuple[str, int, int], str] | None = None,
) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "replicas": list(replicas),
                "log_dirs": [(directories or {}).get((topic, partition, broker), ANY) for broker in replicas],
            }
            for (topic, partition), replicas in sorted(assignment.items())
        ],
    }


def text(
    assignment: Mapping[Partition, Sequence[int]],
    directories: Mapping[tuple[str, int, int], str] | None = None,
) -> str:
    return json.dumps(as_json(assignment, directories), ensure_ascii=False, separators=(",", ":"))


def read(path: Path) -> Assignment:
    """Raises Failure with a sentence for anything but a usable assignment."""
    found: Assignment = {}
    for entry in _entries(path, "partitions"):
        try:
            partition = (str(entry["topic"]), int(entry["partition"]))
            replicas = [int(broker) for broker in entry["replicas"]]
        except (KeyError, TypeError, ValueError):
            raise Failure(
                f"Each partition in {path} has a topic, a partition and replicas; {json.dumps(entry)} has not."
            ) from None
        name = f"{partition[0]}-{partition[1]}"
        if partition in found:
            raise Failure(f"Partition reassignment contains duplicate topic partitions: {name}")
        if not replicas:
            raise Failure(f"Partition replica list cannot be empty: {name} in {path} has none.")
        if len(set(replicas)) != len(replicas):
            raise Failure(
                f"Partition replica lists may not contain duplicate entries: {name} in {path} does."
            )
        directories = entry.get("log_dirs") or [ANY] * len(replicas)
        if len(directories) != len(replicas) or not all(isinstance(each, str) for each in directories):
            raise Failure(f'"log_dirs" of {name} in {path} needs a directory, or "any", for each replica.')
        found[partition] = replicas
    if not found:
        raise Failure(f"Partition reassignment list cannot be empty; {path} looks like {_FORM}.")
    return found


def read_directories(path: Path) -> dict[tuple[str, int, int], str]:
    """Where the file wants replicas (topic, partition, broker) to be; to be asked after `read`."""
    return {
        (str(entry["topic"]), int(entry["partition"]), int(broker)): directory
        for entry in _entries(path, "partitions")
        for broker, directory in zip(entry["replicas"], entry.get("log_dirs") or (), strict=False)
        if directory != ANY
    }


def read_topics(path: Path) -> list[str]:
    """The file of --topics-to-move-json-file."""
    try:
        return [str(entry["topic"]) for entry in _entries(path, "topics")]
    except (KeyError, TypeError):
        raise Failure(f'{path} must look like {{"version": 1, "topics": [{{"topic": "orders"}}]}}.') from None


def read_partitions(path: Path) -> list[Partition]:
    """The file of kafka-leader-election.sh: partitions without replicas."""
    found: list[Partition] = []
    for entry in _entries(path, "partitions"):
        try:
            found.append((str(entry["topic"]), int(entry["partition"])))
        except (KeyError, TypeError, ValueError):
            raise Failure(
                f"Each partition in {path} has a topic and a partition; {json.dumps(entry)} has not."
            ) from None
    twice = sorted({f"{topic}-{number}" for topic, number in found if found.count((topic, number)) > 1})
    if twice:
        raise Failure(f"Replica election data contains duplicate partitions: {','.join(twice)}")
    return found


def replica_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3` is partition 0 on brokers 1 and 2, partition 1 on brokers 2 and 3."""
    try:
        assignment = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise Failure(
            f"A replica assignment looks like 1:2,2:3 (brokers by partition), not '{text}'."
        ) from None
    for partition, brokers in enumerate(assignment):
        if len(set(brokers)) != len(brokers):
            raise Failure(f"Partition {partition} names a broker twice in '{text}'.")
        if len(brokers) != len(assignment[0]):
            raise Failure(
                f"Partition {partition} has another number of replicas than partition 0 in '{text}'."
            )
    return assignment


def _entries(path: Path, field: str) -> list[Any]:
    try:
        given: Any = json.loads(path.read_text())
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError as error:
        raise Failure(f"{path} is no JSON ({error}).") from None
    if not isinstance(given, dict) or not isinstance(given.get(field), list):
        raise Failure(f'{path} must be a JSON object with a list of "{field}", such as {_FORM}.')
    if given.get("version", 1) != 1:
        raise Failure(f"Not supported version field value {given['version']}")
    entries: list[Any] = given[field]
    return entries

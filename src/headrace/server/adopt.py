"""Takes over topics that Apache Kafka (or another Headrace) wrote: its partition folders are copied into the data directory
of a stopped broker and added to the cluster's metadata with the ids and leader epochs they have.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.clock import SystemClock
from headrace.server.cluster.changes import Change, TopicCreated
from headrace.server.cluster.ids import random_id
from headrace.server.cluster.image import ConfigResource, MetadataImage, Partition, ResourceType, Topic
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.config.broker import BrokerConfig
from headrace.server.identity import StartError
from headrace.server.log.checkpoints import CLEANER, read_checkpoint, write_checkpoint
from headrace.server.log.config import LogConfig
from headrace.server.log.directory import LogDirectory
from headrace.server.log.environment import Environment
from headrace.server.log.files import Files
from headrace.server.log.metadata import read_partition_metadata
from headrace.server.log.partition import PartitionLog
from headrace.server.node import Node
from headrace.wire.errors import KafkaError

_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<index>[0-9]+)")
_KEPT = re.compile(
    r"[0-9]{20}\.(log|index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata"
)

Progress = Callable[[int], None]
"""Called with the bytes copied since the last call."""


@dataclass(frozen=True, slots=True)
class Adopted:
    topic: str
    partitions: int
    bytes: int


class AdoptError(Exception):
    """Why a topic cannot be taken over, in one sentence."""


def find_topics(sources: Sequence[Path]) -> dict[str, dict[int, Path]]:
    """Partition folders by topic and number: `sources` are such folders, or directories that hold some."""
    found: dict[str, dict[int, Path]] = {}
    for source in sources:
        folders = [source] if _is_partition(source) else sorted(filter(_is_partition, _children(source)))
        if not folders:
            raise AdoptError(
                f"{source} holds no partition folders such as orders-0 with *.log files in them."
            )
        for folder in folders:
            match = _PARTITION.fullmatch(folder.name)
            assert match is not None
            partitions = found.setdefault(match["topic"], {})
            index = int(match["index"])
            if index in partitions:
                raise AdoptError(f"{folder.name} is given twice: {partitions[index]} and {folder}.")
            partitions[index] = folder
    for topic, partitions in found.items():
        missing = set(range(max(partitions) + 1)) - set(partitions)
        if missing:
            raise AdoptError(
                f"Topic {topic} lacks partition {min(missing)}; all partitions must be adopted together."
            )
    return found


def _children(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError as error:
        raise AdoptError(f"Cannot read {directory}: {error.strerror}.") from None


def _is_partition(folder: Path) -> bool:
    return bool(_PARTITION.fullmatch(folder.name)) and folder.is_dir() and any(folder.glob("*.log"))


async def adopt(
    config: BrokerConfig,
    topics: Mapping[str, Mapping[int, Path]],
    settings: Mapping[str, str],
    progress: Progress,
) -> list[Adopted]:
    """Copy the folders and enter the topics; the broker of this data directory must not be running."""
    target = config.log_dirs[0]
    target.mkdir(parents=True, exist_ok=True)
    for topic, partitions in topics.items():
        for index in partitions:
            if (target / f"{topic}-{index}").exists():
                raise AdoptError(
                    f"{target / f'{topic}-{index}'} exists already; delete the topic there first."
                )
    _check_not_running(target)
    try:
        sizes = {topic: _copy(partitions, target, topic, progress) for topic, partitions in topics.items()}
        _expect_gaps(target, topics)
        _recover(config, target, topics)
        await _enter(config, topics, settings)
    except BaseException:
        for topic, partitions in topics.items():
            for index in partitions:
                shutil.rmtree(target / f"{topic}-{index}", ignore_errors=True)
        raise
    return [Adopted(topic, len(partitions), sizes[topic]) for topic, partitions in topics.items()]


def _check_not_running(target: Path) -> None:
    directory = LogDirectory(Files(), str(target))
    try:
        directory.acquire()
    except OSError as error:
        raise AdoptError(str(error)) from None
    directory.release()


async def _enter(
    config: BrokerConfig, topics: Mapping[str, Mapping[int, Path]], settings: Mapping[str, str]
) -> None:
    node = Node(config, removes_strays=False)
    try:
        await node.start()
    except StartError as error:
        raise AdoptError(str(error)) from None
    try:
        await node.cluster.decide(lambda now: Outcome(None, _changes(node, now.image, topics, settings)))
    finally:
        await node.stop()


def _copy(partitions: Mapping[int, Path], target: Path, topic: str, progress: Progress) -> int:
    total = 0
    for index, folder in partitions.items():
        copy = target / f"{topic}-{index}"
        copy.mkdir()
        for file in sorted(folder.iterdir()):
            if _KEPT.fullmatch(file.name):
                shutil.copy2(file, copy / file.name)
                size = file.stat().st_size
                total += size
                progress(size)
    return total


def _expect_gaps(target: Path, topics: Mapping[str, Mapping[int, Path]]) -> None:
    """It is unknown whether the source log was compacted, so gaps in it are not treated as damage."""
    files = Files()
    known = read_checkpoint(files, str(target), CLEANER)
    adopted = {(topic, index): 0 for topic, partitions in topics.items() for index in partitions}
    write_checkpoint(files, str(target), CLEANER, {**known, **adopted})


def _recover(config: BrokerConfig, target: Path, topics: Mapping[str, Mapping[int, Path]]) -> None:
    """Check every batch: the clean-stop mark of this data directory does not cover copied logs."""
    environment = Environment(Files(), SystemClock())
    settings = LogConfig.of(config.topic_config({}))
    for topic, partitions in topics.items():
        for index in partitions:
            log = PartitionLog(
                environment, str((target / f"{topic}-{index}").absolute()), topic, index, settings
            )
            log.was_compacted = True
            try:
                log.load()
                log.close()
            except KafkaError as error:
                raise AdoptError(error.message) from None


def _changes(
    node: Node, image: MetadataImage, topics: Mapping[str, Mapping[int, Path]], settings: Mapping[str, str]
) -> list[Change]:
    changes: list[Change] = []
    for topic, partitions in topics.items():
        if topic in image.topics:
            raise AdoptError(f"A topic {topic} exists already.")
        states = []
        topic_id = None
        for index in sorted(partitions):
            log = node.logs.get(topic, index)
            if log is None or log.offline_reason is not None:
                raise AdoptError(f"The copy of {topic}-{index} cannot be opened; see the log lines above.")
            topic_id = topic_id or read_partition_metadata(Files(), log.directory)
            # The next leader's epoch must be above every epoch in the records.
            own = (node.broker_id,)
            states.append(Partition(own, own, node.broker_id, leader_epoch=max(log.latest_epoch, -1) + 1))
        changes.append(TopicCreated(Topic(topic, topic_id or random_id(), tuple(states))))
        if settings:
            changes.append(ConfigsChanged(ConfigResource(ResourceType.TOPIC, topic), dict(settings)))
    return changes

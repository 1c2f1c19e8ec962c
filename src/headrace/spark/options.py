"""What a job asks to read, checked before anything runs.

Names and meanings are those of Spark's own Kafka connector, in any case, so that a job moves over by changing one
word. Added here: `columns` (build only these), `group` (commit offsets to this consumer group) and
`failOnRecreatedTopic`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.link.settings import KafkaSettings, SettingsError
from headrace.spark.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from headrace.spark.settings import current_options, kafka_settings

log = logging.getLogger(__name__)

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

BLOCK_BYTES = 8 * 1024 * 1024
"""What is fetched at a time, unless kafka.max.partition.fetch.bytes says otherwise."""

_STRATEGIES = ("subscribe", "subscribePattern", "assign")
_KNOWN = {
    name.lower()
    for name in (
        *_STRATEGIES,
        "startingOffsets",
        "endingOffsets",
        "startingOffsetsByTimestamp",
        "endingOffsetsByTimestamp",
        "startingTimestamp",
        "endingTimestamp",
        "startingOffsetsByTimestampStrategy",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "minPartitions",
        "maxRecordsPerPartition",
        "failOnDataLoss",
        "failOnRecreatedTopic",
        "includeHeaders",
        "groupIdPrefix",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "kafkaConsumer.pollTimeoutMs",
        "columns",
        "group",
        "path",
    )
}
_UNSUPPORTED = {
    "auto.offset.reset": "set the source option 'startingOffsets' instead: Spark keeps the offsets itself",
    "key.deserializer": "keys arrive as bytes; decode them with DataFrame functions",
    "value.deserializer": "values arrive as bytes; decode them with DataFrame functions",
    "enable.auto.commit": "Spark keeps the offsets; the option 'group' commits them to a consumer group as well",
    "interceptor.classes": "interceptors are Java classes",
}
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of what is read: by offsets (EARLIEST, LATEST or per partition) or by timestamps in milliseconds."""

    everywhere: int | None = None
    offsets: Offsets | None = None
    timestamp: int | None = None
    timestamps: Offsets | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    kafka: KafkaSettings
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()
    start: Limit = field(default_factory=Limit)
    end: Limit = field(default_factory=Limit)
    latest_if_no_timestamp: bool = False
    """startingOffsetsByTimestampStrategy=latest: begin at the end where no record is as new as asked."""
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay: float = 900.0
    min_partitions: int | None = None
    max_records: int | None = None
    fail_on_data_loss: bool = True
    fail_on_recreated: bool = True
    """What to do when a topic was deleted and another made under its name; as fail_on_data_loss if nothing is said."""
    committed: bool = False
    columns: tuple[str, ...] = COLUMNS
    group: str | None = None
    fetch_retries: int = 3
    fetch_interval: float = 0.01
    """How often, and how far apart, an end that lies before the start is asked for again."""
    poll_timeout: float = 120.0
    block_bytes: int = BLOCK_BYTES
    max_wait_ms: int = 500
    check_crcs: bool = True

    @classmethod
    def of(cls, given: Mapping[str, str], *, streaming: bool) -> ReadOptions:
        """From a job's options; SettingsError in one sentence for what cannot be meant."""
        options = current_options(given)
        for name in options:
            if name not in _KNOWN and not name.startswith("kafka."):
                log.warning("headrace: the option %r is not known and has no effect", name)
        _refuse_unsupported(options)
        topics, pattern, assigned = _strategy(options)
        maximum = _positive(options, "maxOffsetsPerTrigger")
        minimum = _positive(options, "minOffsetsPerTrigger")
        if maximum is not None and minimum is not None and minimum > maximum:
            raise SettingsError(
                f"The value of minOffsetsPerTrigger({minimum}) is higher than the maxOffsetsPerTrigger({maximum})."
            )
        on_loss = _boolean(options, "failOnDataLoss", True)
        start = _limit(options, "starting", EARLIEST if not streaming else LATEST)
        if streaming:
            for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
                if name.lower() in options:
                    what = "offset" if name == "endingOffsets" else "timestamp"
                    raise SettingsError(
                        f"ending {what} not valid in streaming queries: take the option {name} away."
                    )
            end = Limit(everywhere=LATEST)
        else:
            end = _limit(options, "ending", LATEST)
            _check_batch(start, end)
        return cls(
            kafka=kafka_settings(options),
            topics=topics,
            pattern=pattern,
            assigned=assigned,
            start=start,
            end=end,
            latest_if_no_timestamp=_choice(options, "startingOffsetsByTimestampStrategy", ("error", "latest"))
            == "latest",
            max_offsets=maximum,
            min_offsets=minimum,
            max_delay=_duration(options, "maxTriggerDelay", 900.0),
            min_partitions=_positive(options, "minPartitions"),
            max_records=_positive(options, "maxRecordsPerPartition"),
            fail_on_data_loss=on_loss,
            fail_on_recreated=_boolean(options, "failOnRecreatedTopic", on_loss),
            committed=_choice(options, "kafka.isolation.level", ("read_uncommitted", "read_committed"))
            == "read_committed",
            columns=read_columns(options),
            group=options.get("group", "").strip() or None,
            fetch_retries=_whole(options, "fetchOffset.numRetries", 3),
            fetch_interval=(_positive(options, "fetchOffset.retryIntervalMs") or 10) / 1000,
            poll_timeout=(_positive(options, "kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
            block_bytes=_positive(options, "kafka.max.partition.fetch.bytes") or BLOCK_BYTES,
            max_wait_ms=_positive(options, "kafka.fetch.max.wait.ms") or 500,
            check_crcs=_boolean(options, "kafka.check.crcs", True),
        )


def read_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of the rows: the official schema's, or those that `columns` names, in the schema's order."""
    options = {name.lower(): value for name, value in options.items()}
    available = (*COLUMNS, "headers") if _boolean(options, "includeHeaders", False) else COLUMNS
    text = options.get("columns")
    if text is None:
        return available
    by_name = {name.lower(): name for name in (*COLUMNS, "headers", "topicId")}
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [name for name in wanted if name.lower() not in by_name]
    if unknown or not wanted:
        raise SettingsError(
            f"columns is {text!r}; it names some of {', '.join(by_name.values())}, with commas between."
        )
    chosen = {by_name[name.lower()] for name in wanted}
    return tuple(name for name in by_name.values() if name in chosen)


def _refuse_unsupported(options: Mapping[str, str]) -> None:
    for name, remedy in _UNSUPPORTED.items():
        if f"kafka.{name}" in options:
            raise SettingsError(f"Kafka option '{name}' is not supported: {remedy}.")
    if "kafka.group.id" in options:
        log.warning(
            "headrace: kafka.group.id has no effect on reading, because nothing joins a group; "
            "to commit offsets to a consumer group set the option 'group'"
        )


def _strategy(options: Mapping[str, str]) -> tuple[tuple[str, ...], str | None, tuple[TopicPartition, ...]]:
    given = [name for name in _STRATEGIES if name.lower() in options]
    if len(given) != 1:
        how = "One" if not given else "Only one"
        verb = "must" if not given else "can"
        raise SettingsError(
            f"{how} of the following options {verb} be specified for Kafka source: {', '.join(_STRATEGIES)}."
        )
    value = options[given[0].lower()].strip()
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        if not topics:
            raise SettingsError("No topics to subscribe to: the option 'subscribe' is empty.")
        return topics, None, ()
    if given[0] == "subscribePattern":
        if not value:
            raise SettingsError("Pattern to subscribe is empty: the option 'subscribePattern' is empty.")
        try:
            re.compile(value)
        except re.error as error:
            raise SettingsError(f"subscribePattern {value!r} is not a regular expression: {error}.") from None
        return (), value, ()
    parsed = _json(value, "assign", '{"topic":[0,1]}')
    partitions = []
    for topic, numbers in parsed.items():
        if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
            raise SettingsError(f'assign is {value!r}; write it as {{"topic":[0,1]}}.')
        partitions += [TopicPartition(topic, number) for number in numbers]
    if not partitions:
        raise SettingsError(f"No topicpartitions to assign: the option 'assign' is {value!r}.")
    return (), None, tuple(dict.fromkeys(partitions))


def _limit(options: Mapping[str, str], end: str, default: int) -> Limit:
    """The first that is given of: one timestamp, timestamps per partition, offsets."""
    moment = options.get(f"{end}timestamp")
    if moment is not None:
        if not moment.strip().isdecimal():  # below zero brokers read other wishes than times
            raise SettingsError(
                f"Expected a single long value, got {moment!r} for {end}Timestamp: milliseconds since 1970."
            )
        return Limit(timestamp=int(moment))
    by_timestamp = options.get(f"{end}offsetsbytimestamp")
    if by_timestamp is not None:
        name = f"{end}OffsetsByTimestamp"
        return Limit(timestamps=_per_partition(by_timestamp, name, '{"topicA":{"0":1700000000000}}', 0))
    text = options.get(f"{end}offsets")
    if text is None:
        return Limit(everywhere=default)
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return Limit(everywhere=EARLIEST if word == "earliest" else LATEST)
    example = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    return Limit(offsets=_per_partition(text, f"{end}Offsets", example, EARLIEST))


def _check_batch(start: Limit, end: Limit) -> None:
    if start.everywhere == LATEST:
        raise SettingsError("starting offset can't be latest for batch queries on Kafka.")
    if end.everywhere == EARLIEST:
        raise SettingsError("ending offset can't be earliest for batch queries on Kafka.")
    for partition, offset in (start.offsets or {}).items():
        if offset == LATEST:
            raise SettingsError(
                f"startingOffsets for {partition} can't be latest for batch queries on Kafka."
            )
    for partition, offset in (end.offsets or {}).items():
        if offset == EARLIEST:
            raise SettingsError(
                f"ending offset for {partition} can't be earliest for batch queries on Kafka."
            )
    for first, last in ((start.offsets, end.offsets), (start.timestamps, end.timestamps)):
        if first is None or last is None:
            continue
        if first.keys() != last.keys():
            raise SettingsError(
                "The specified start offset and end offset should have the same topic-partitions: "
                f"{_names(first)} and {_names(last)}."
            )
        for partition, offset in first.items():
            if offset > last[partition] >= 0:
                raise SettingsError(
                    f"The specified start {offset} is greater than the end {last[partition]} for {partition}."
                )


def _names(offsets: Offsets) -> str:
    return ",".join(sorted(map(str, offsets)))


def _json(text: str, name: str, example: str) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise SettingsError(f"Expected e.g. {example} for {name}, got {text}")
    return parsed


def _per_partition(text: str, name: str, example: str, smallest: int) -> Offsets:
    found: Offsets = {}
    for topic, partitions in _json(text, name, example).items():
        if not isinstance(partitions, dict):
            raise SettingsError(f"Expected e.g. {example} for {name}, got {text}")
        for number, value in partitions.items():
            if (
                not str(number).isdigit()
                or not isinstance(value, int)
                or isinstance(value, bool)
                or value < smallest
            ):
                raise SettingsError(f"Expected e.g. {example} for {name}, got {text}")
            found[TopicPartition(topic, int(number))] = value
    return found


def _positive(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        value = int(text.strip())
    except ValueError:
        value = 0
    if value <= 0:
        raise SettingsError(f"{name} must be positive: it is {text!r}.")
    return value


def _whole(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name.lower(), str(default)).strip()
    if not text.isdecimal():
        raise SettingsError(f"{name} is {text!r}; it is 0 or more.")
    return int(text)


def _boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise SettingsError(f"{name} is {text!r}; it is true or false.")
    return text == "true"


def _choice(options: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """One of `choices`, the first if nothing is said."""
    text = options.get(name.lower(), choices[0]).strip().lower()
    if text not in choices:
        raise SettingsError(f"{name} is {text!r}; it is one of {', '.join(choices)}.")
    return text


def _duration(options: Mapping[str, str], name: str, default: float) -> float:
    text = options.get(name.lower())
    if text is None:
        return default
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if match is None or (match[2] or "ms") not in _UNITS:
        raise SettingsError(f"{name} is {text!r}; write a number with a unit, as 15m, 30s or 500ms.")
    return int(match[1]) * _UNITS[match[2] or "ms"]

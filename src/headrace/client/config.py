"""Kafka's settings in, librdkafka's out: names, defaults and the three delivery choices.

A setting may be given in a mapping under Kafka's name or as a keyword with underscores (linger_ms). Where
librdkafka has another name or default than Kafka's Java client, Kafka's wins.
"""

from __future__ import annotations

import logging
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaError, KafkaException

from headrace.client.errors import ConfigError, explain, kafka_error
from headrace.client.repeats import Repeats
from headrace.link.errors import SettingsError
from headrace.link.java_settings import known_names
from headrace.link.java_values import check_assignors
from headrace.link.logins import TOKEN_LOGIN
from headrace.link.tls import unreadable_file
from headrace.link.translation import Removed, translate
from headrace.nearest import nearest

Delivery = Literal["at_most_once", "at_least_once", "exactly_once"]
Config = str | Mapping[str, object] | None
"""Bootstrap servers as text, or a mapping of settings under Kafka's names."""

log = logging.getLogger("headrace.client")
connection_log = logging.getLogger("headrace.client.connection")
connection_log.addFilter(Repeats())


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    librdkafka: dict[str, object]
    partitioner: object
    max_block: float
    delivery_timeout: float
    metadata_max_age: float
    transactional_id: str | None
    transaction_timeout: float


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    librdkafka: dict[str, object]
    group_id: str | None
    max_poll_records: int
    api_timeout: float
    auto_commit: bool
    commit_first: bool
    incremental: bool


def producer_settings(
    config: Config, keywords: Mapping[str, object], delivery: Delivery | None
) -> ProducerSettings:
    settings = merged(config, keywords)
    _check_delivery(delivery)
    _refuse_arguments(settings, "key.serializer", "value.serializer")
    _rename(settings)
    transactional_id = settings.get("transactional.id")
    acks = _acks(settings.get("acks", 0 if delivery == "at_most_once" else "all"))
    if delivery in ("at_least_once", "exactly_once") and acks != "all":
        raise ConfigError(f"{delivery} needs acks=all, not acks={acks}")
    if delivery == "exactly_once" and transactional_id is None:
        raise ConfigError(
            "exactly_once needs transactional_id=: a name that stays the same when this producer restarts "
            "and "
            "that no other running producer has"
        )
    if delivery == "at_most_once":
        settings.setdefault("retries", 0)
    settings["acks"] = acks
    settings.setdefault("enable.idempotence", acks == "all" and _whole(settings, "retries", 1) > 0)
    # librdkafka wants a transaction to outlive the delivery of each of its records.
    within_transaction = (
        120_000 if transactional_id is None else settings.get("transaction.timeout.ms", 60_000)
    )
    settings.setdefault("delivery.timeout.ms", within_transaction)
    return ProducerSettings(
        librdkafka=_as_librdkafka(settings, own=("partitioner", "max.block.ms")),
        partitioner=settings.get("partitioner", "murmur2"),
        max_block=_seconds(settings, "max.block.ms", 60_000),
        delivery_timeout=_seconds(settings, "delivery.timeout.ms", 120_000) or math.inf,
        metadata_max_age=_seconds(settings, "metadata.max.age.ms", 300_000),
        transactional_id=None if transactional_id is None else str(transactional_id),
        transaction_timeout=_seconds(settings, "transaction.timeout.ms", 60_000),
    )


def consumer_settings(
    config: Config, keywords: Mapping[str, object], delivery: Delivery | None
) -> ConsumerSettings:
    settings = merged(config, keywords)
    _check_delivery(delivery)
    _refuse_arguments(settings, "key.deserializer", "value.deserializer")
    group_id = settings.get("group.id")
    commits_itself = delivery in ("at_most_once", "exactly_once")
    auto_commit = _flag(settings.get("enable.auto.commit", not commits_itself)) and group_id is not None
    if auto_commit and commits_itself:
        raise ConfigError(
            f"enable.auto.commit cannot be true with {delivery}, which has its own time to commit"
        )
    if delivery == "at_most_once" and group_id is None:
        raise ConfigError("at_most_once needs group_id=: offsets are committed before records are returned")
    settings["enable.auto.commit"] = auto_commit
    settings["enable.auto.offset.store"] = False
    settings.setdefault("group.id", f"headrace-no-group-{uuid.uuid4().hex}")
    settings.setdefault("allow.auto.create.topics", True)
    if delivery == "exactly_once":
        settings.setdefault("isolation.level", "read_committed")
    strategy = _assignors(settings)
    max_poll_records = str(settings.get("max.poll.records", 500))
    if not max_poll_records.isdigit() or int(max_poll_records) < 1:
        raise ConfigError(f"max.poll.records is {max_poll_records}: it must be a number of at least 1")
    return ConsumerSettings(
        librdkafka=_as_librdkafka(settings, own=("max.poll.records", "default.api.timeout.ms")),
        group_id=None if group_id is None else str(group_id),
        max_poll_records=int(max_poll_records),
        api_timeout=_seconds(settings, "default.api.timeout.ms", 60_000),
        auto_commit=auto_commit,
        commit_first=delivery == "at_most_once",
        incremental="cooperative" in strategy or settings.get("group.protocol") == "consumer",
    )


def admin_settings(config: Config, keywords: Mapping[str, object]) -> tuple[dict[str, object], float]:
    settings = merged(config, keywords)
    return _as_librdkafka(settings, own=("default.api.timeout.ms",)), _seconds(
        settings, "default.api.timeout.ms", 60_000
    )


def connection_settings(config: Config) -> dict[str, object]:
    """Only what says where the cluster is and how to be let in, for a second client to the same cluster."""
    return {
        name: value
        for name, value in merged(config, {}).items()
        if name.startswith(_CONNECTION) or name in _CONNECTION_TOO
    }


def log_error(error: KafkaError) -> None:
    """Logs librdkafka's reports about connections; what concerns a call is raised by the call."""
    connection_log.warning("%s", explain(error))


def config_error(cause: Exception, settings: Mapping[str, object]) -> ConfigError:
    """What librdkafka, or its Python side, says about a wrong setting, as a sentence."""
    if (unreadable := unreadable_file(settings)) is not None:
        return ConfigError(unreadable)  # librdkafka gives OpenSSL's number for it.
    text = (kafka_error(cause).str() if isinstance(cause, KafkaException) else str(cause)).rstrip(".")
    unknown = re.search(r'No such configuration property: "([^"]+)"', text)
    near = nearest(unknown[1], known_names(_OWN)) if unknown is not None else None
    return ConfigError(text if near is None else f"{text}. Did you mean {near!r}?")


def merged(config: Config, keywords: Mapping[str, object]) -> dict[str, object]:
    """All settings under Kafka's names; keywords win."""
    settings: dict[str, object] = {}
    if isinstance(config, str):
        settings["bootstrap.servers"] = config
    elif isinstance(config, Mapping):
        settings.update(config)
    elif config is not None:
        raise ConfigError(
            f"the first argument is {config!r}: give bootstrap servers as text, or a mapping of settings"
        )
    for keyword, value in keywords.items():
        name = keyword if keyword in _CALLBACKS else keyword.replace("_", ".")
        settings.pop(name, None)  # of two names for one setting the later wins
        settings[name] = value
    settings = _in_librdkafkas_names(settings)
    servers = settings.get("bootstrap.servers")
    if not servers:
        raise ConfigError('bootstrap.servers is missing: name at least one broker, as in "localhost:9092"')
    if isinstance(servers, list | tuple):
        settings["bootstrap.servers"] = ",".join(map(str, servers))
    return settings


def _in_librdkafkas_names(settings: Mapping[str, object]) -> dict[str, object]:
    given = {name: value for name, value in settings.items() if value is not None}
    with _as_config_error():
        translation = translate(given, removed=Removed.REFUSED, own=_OWN)
    for sentence in (*translation.notes, *translation.ignored):
        log.warning("%s", sentence)
    return translation.settings


@contextmanager
def _as_config_error() -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        raise ConfigError(str(error).removesuffix(".")) from None


def _as_librdkafka(settings: Mapping[str, object], own: tuple[str, ...]) -> dict[str, object]:
    if TOKEN_LOGIN in settings:
        raise ConfigError(
            "sasl.jaas.config has tokenauth=true: librdkafka cannot log in with a delegation token; give this client a user"
        )
    ready: dict[str, object] = {"logger": connection_log}
    for name, value in settings.items():
        if name in own:
            continue
        if isinstance(value, bool):
            ready[name] = "true" if value else "false"
        else:
            ready[name] = _harmless(name, value) if name in _LISTENERS and callable(value) else value
    return ready


def _harmless(name: str, listener: Callable[..., object]) -> Callable[..., None]:
    """What a listener raised inside librdkafka would take a record, or the thread that polls, with it."""

    def listen(*about: object) -> None:
        try:
            listener(*about)
        except BaseException:
            log.exception("the callback %s failed", name)

    return listen


def _rename(settings: dict[str, object]) -> None:
    for kafka, librdkafka in _PRODUCER_NAMES.items():
        if kafka in settings:
            settings[librdkafka] = settings.pop(kafka)


def _acks(value: object) -> str:
    acks = "all" if str(value) in ("all", "-1") else str(value)
    if acks not in ("0", "1", "all"):
        raise ConfigError(
            f"acks is {value!r}: choose 0 (do not wait), 1 (the leader has it) or all (every in-sync "
            f"replica has it)"
        )
    return acks


def _check_delivery(delivery: str | None) -> None:
    if delivery not in (None, "at_most_once", "at_least_once", "exactly_once"):
        raise ConfigError(f"delivery is {delivery!r}: choose at_most_once, at_least_once or exactly_once")


def _assignors(settings: Mapping[str, object]) -> str:
    chosen = str(settings.get("partition.assignment.strategy", ""))
    with _as_config_error():
        check_assignors(chosen)
    return chosen


def _refuse_arguments(settings: Mapping[str, object], *names: str) -> None:
    for name in names:
        if name in settings:
            keyword = name.replace(".", "_")
            raise ConfigError(f"{name} is not a setting here but an argument: {keyword}=serializers.json()")


def _flag(value: object) -> bool:
    return value if isinstance(value, bool) else str(value).lower() == "true"


def _whole(settings: Mapping[str, object], name: str, default: int) -> int:
    try:
        return int(str(settings.get(name, default)))
    except ValueError:
        raise ConfigError(f"{name} is {settings[name]!r}: it must be a whole number") from None


def _seconds(settings: Mapping[str, object], name: str, default: int) -> float:
    try:
        return float(str(settings.get(name, default))) / 1000
    except ValueError:
        raise ConfigError(f"{name} is {settings[name]!r}: it must be a number of milliseconds") from None


_CALLBACKS = frozenset({"error_cb", "stats_cb", "throttle_cb", "oauth_cb", "on_commit", "logger"})
_LISTENERS = frozenset({"error_cb", "stats_cb", "throttle_cb"})
_CONNECTION = ("bootstrap.", "security.", "sasl.", "ssl.", "socket.", "client.", "reconnect.")
_CONNECTION_TOO = frozenset({"oauth_cb", "enable.ssl.certificate.verification", "broker.address.family"})
_PRODUCER_NAMES = {
    "message.timeout.ms": "delivery.timeout.ms",  # librdkafka knows it under both names
    "partitioner.class": "partitioner",
}
_OWN = frozenset(
    {
        "default.api.timeout.ms",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "partitioner.class",
        "value.deserializer",
        "value.serializer",
    }
)
"""What this package does itself, with settings that librdkafka does not have."""

"""Settings that fight each other, as rules over values in effect: one for topics, one for brokers, one for clients.

Pure: values in, problems out. `settings` asks them for the file and for running brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.client.durations import show_seconds

Values = Mapping[str, str]

_LONG_MAX = (1 << 63) - 1
_HEADERS = 1_024
"""Kafka's own defaults differ by the few bytes of a batch header."""
_MORE_HEADERS = 64 * 1024 + _HEADERS
"""What topics for dead letters and replays are given beyond their source: a batch that exceeds a fetch by no more costs nothing."""
_JAVA_SESSION, _JAVA_TRANSACTION = 45_000, 60_000
"""Defaults of clients: session.timeout.ms and transaction.timeout.ms."""


@dataclass(frozen=True, slots=True)
class Conflict:
    rule: str
    """The settings that fight, so that many topics with the same problem become one sentence."""
    sentence: str
    """What comes of it, after "In topic x: "."""
    remedy: str
    is_serious: bool = True


def _number(values: Values, name: str, default: int) -> int:
    try:
        return int(values[name])
    except (KeyError, ValueError):
        return default


def _is_headrace(broker: Values) -> bool:
    return any(name.startswith("headrace.") for name in broker)


def _days(milliseconds: float) -> str:
    return show_seconds(milliseconds / 1000) or "0 s"


def in_topic(topic: Values, broker: Values) -> Iterator[Conflict]:
    """`topic` are the values in effect for one topic, `broker` those of the brokers."""
    policies = topic.get("cleanup.policy", "delete")
    kept, size = _number(topic, "retention.ms", -1), _number(topic, "retention.bytes", -1)
    segment, rolls = _number(topic, "segment.bytes", 1 << 30), _number(topic, "segment.ms", 604_800_000)
    if "delete" in policies:
        if 0 <= kept < rolls:
            yield Conflict(
                "retention.ms, segment.ms",
                f"retention.ms is {_days(kept)} but a segment may take {_days(rolls)} to fill (segment.ms), and is deleted as a whole: "
                f"records of a partition that fills slowly live up to {_days(kept + rolls)}",
                "lower segment.ms below retention.ms",
                is_serious=False,
            )
        if 0 <= size < segment:
            yield Conflict(
                "retention.bytes, segment.bytes",
                f"retention.bytes ({size:,}) is less than one segment (segment.bytes {segment:,}), and the segment that is written to is "
                "kept: a partition takes more than retention.bytes allows",
                "lower segment.bytes to a fourth of retention.bytes or less",
            )
        if "compact" in policies and 0 <= kept <= _number(topic, "min.compaction.lag.ms", 0):
            yield Conflict(
                "retention.ms, min.compaction.lag.ms",
                "retention.ms is no longer than min.compaction.lag.ms: records are deleted before they may be compacted",
                "raise retention.ms, or lower min.compaction.lag.ms",
            )
        check_every = _number(broker, "log.retention.check.interval.ms", 300_000)
        if 0 <= kept < check_every:
            yield Conflict(
                "retention.ms, log.retention.check.interval.ms",
                f"retention.ms is {_days(kept)} but brokers delete only every {_days(check_every)} (log.retention.check.interval.ms)",
                "lower log.retention.check.interval.ms on the brokers, or do not count on so short a retention",
                is_serious=False,
            )
    if "compact" in policies:
        if broker.get("log.cleaner.enable", "true").lower() == "false":
            yield Conflict(
                "cleanup.policy, log.cleaner.enable",
                "cleanup.policy is compact but log.cleaner.enable=false on the brokers: nothing is ever compacted, and the topic grows",
                "set log.cleaner.enable=true",
            )
        longest = _number(topic, "max.compaction.lag.ms", _LONG_MAX)
        if _number(topic, "min.compaction.lag.ms", 0) > longest:
            yield Conflict(
                "min.compaction.lag.ms, max.compaction.lag.ms",
                "min.compaction.lag.ms is longer than max.compaction.lag.ms: both cannot hold",
                "lower min.compaction.lag.ms",
            )
    largest = _number(topic, "max.message.bytes", 1_048_588)
    refused = "a request with such a batch is refused and its connection closed"
    slow = "a batch that large fills a whole fetch, and slows down every reader"
    behind = "followers fetch such batches one at a time and fall behind"
    for name, consequence, room in (
        ("socket.request.max.bytes", refused, _HEADERS),
        ("fetch.max.bytes", slow, _MORE_HEADERS),
        ("replica.fetch.max.bytes", behind, _MORE_HEADERS),
        ("replica.fetch.response.max.bytes", behind, _MORE_HEADERS),
    ):
        limit = _number(broker, name, _LONG_MAX)
        if largest > limit + room:
            yield Conflict(
                f"max.message.bytes, {name}",
                f"max.message.bytes ({largest:,}) is larger than {name} ({limit:,}): {consequence}",
                f"raise {name} on the brokers, or lower max.message.bytes",
                is_serious=consequence is refused,
            )
    if largest > segment:
        yield Conflict(
            "max.message.bytes, segment.bytes",
            f"max.message.bytes ({largest:,}) is larger than segment.bytes ({segment:,}): a batch larger than a segment is refused",
            "raise segment.bytes, or lower max.message.bytes",
        )
    flushed, looked = (
        _number(topic, "flush.ms", _LONG_MAX),
        _number(broker, "log.flush.scheduler.interval.ms", _LONG_MAX),
    )
    if flushed < looked and not _is_headrace(broker):  # which looks as often as flush.ms asks for
        yield Conflict(
            "flush.ms, log.flush.scheduler.interval.ms",
            f"flush.ms is {_days(flushed)} but brokers "
            + (
                "never look for logs to flush"
                if looked == _LONG_MAX
                else f"look for logs to flush every {_days(looked)}"
            )
            + " (log.flush.scheduler.interval.ms)",
            "set log.flush.scheduler.interval.ms to flush.ms or less",
        )
    if topic.get("unclean.leader.election.enable", "false").lower() == "true" and (
        _number(topic, "min.insync.replicas", 1) > 1
    ):
        yield Conflict(
            "unclean.leader.election.enable, min.insync.replicas",
            "min.insync.replicas asks for acknowledged records to be safe, and unclean.leader.election.enable=true gives them up when a "
            "replica that was behind becomes leader",
            "set unclean.leader.election.enable=false",
        )


def in_brokers(broker: Values, live: int | None, there: frozenset[str] = frozenset()) -> Iterator[Conflict]:
    """`live` is how many brokers there are, if known; `there` are the topics that exist."""
    factor, minimum = (
        _number(broker, "default.replication.factor", 1),
        _number(broker, "min.insync.replicas", 1),
    )
    if minimum > factor:
        yield Conflict(
            "min.insync.replicas, default.replication.factor",
            f"min.insync.replicas is {minimum} but new topics get {factor} replicas (default.replication.factor): they refuse writes with "
            "acks=all",
            "raise default.replication.factor",
        )
    if (
        live is not None
        and live > 1
        and factor == 1
        and broker.get("auto.create.topics.enable", "true").lower() == "true"
    ):
        yield Conflict(
            "auto.create.topics.enable, default.replication.factor",
            "a client that names a topic that is not there makes one of a single replica (auto.create.topics.enable=true, "
            "default.replication.factor=1)",
            f"set default.replication.factor={min(3, live)}, or auto.create.topics.enable=false",
            is_serious=False,
        )
    for name, topic, why in (
        ("offsets.topic.replication.factor", "__consumer_offsets", "no group can join or commit"),
        ("transaction.state.log.replication.factor", "__transaction_state", "no transaction can begin"),
        ("default.replication.factor", "", "a topic created without a replication factor is refused"),
    ):
        wanted = _number(broker, name, 1)
        if topic and live == 1 and _is_headrace(broker):
            continue  # a broker that stands alone keeps one replica of these, whatever is set
        if live is not None and wanted > live and topic not in there:
            yield Conflict(
                f"{name}, the number of brokers",
                f"{name} is {wanted} and the number of brokers {live}: {why}",
                f"start more brokers, or set {name}={live}",
            )
    if _number(broker, "transaction.state.log.min.isr", 1) > _number(
        broker, "transaction.state.log.replication.factor", 1 << 30
    ):
        yield Conflict(
            "transaction.state.log.min.isr, transaction.state.log.replication.factor",
            "transaction.state.log.min.isr is larger than transaction.state.log.replication.factor: no transaction can be recorded",
            "lower transaction.state.log.min.isr",
        )
    if _number(broker, "message.max.bytes", 0) > _number(broker, "socket.request.max.bytes", _LONG_MAX):
        yield Conflict(
            "message.max.bytes, socket.request.max.bytes",
            "message.max.bytes is larger than socket.request.max.bytes: a request with such a batch is refused and its connection closed",
            "raise socket.request.max.bytes",
        )
    shortest, longest = (
        _number(broker, "group.min.session.timeout.ms", 0),
        _number(broker, "group.max.session.timeout.ms", _LONG_MAX),
    )
    if not shortest <= _JAVA_SESSION <= longest:
        yield Conflict(
            "session.timeout.ms, group.min.session.timeout.ms, group.max.session.timeout.ms",
            f"consumers with the default session.timeout.ms ({_days(_JAVA_SESSION)}) cannot join a group: brokers take {_days(shortest)} "
            f"to {_days(longest)}",
            "let group.min.session.timeout.ms and group.max.session.timeout.ms include 45000",
        )
    if _number(broker, "transaction.max.timeout.ms", _LONG_MAX) < _JAVA_TRANSACTION:
        yield Conflict(
            "transaction.timeout.ms, transaction.max.timeout.ms",
            f"producers with the default transaction.timeout.ms ({_days(_JAVA_TRANSACTION)}) are refused: brokers take up to "
            f"{_days(_number(broker, 'transaction.max.timeout.ms', 0))}",
            "raise transaction.max.timeout.ms to 60000 or more",
        )


def with_offsets(topic: Values, broker: Values) -> Iterator[Conflict]:
    """A group's place must not be forgotten before the records it stands at."""
    place = _number(broker, "offsets.retention.minutes", 10_080) * 60_000
    kept = _number(topic, "retention.ms", -1)
    if "delete" in topic.get("cleanup.policy", "delete") and not 0 <= kept <= place:
        yield Conflict(
            "retention.ms, offsets.retention.minutes",
            f"records are kept {'for ever' if kept < 0 else f'for {_days(kept)}'} but the place of a group without members only for "
            f"{_days(place)} (offsets.retention.minutes): a group that comes back later begins anew",
            "raise offsets.retention.minutes on the brokers to the longest retention",
            is_serious=False,
        )


def in_client(client: Values, broker: Values) -> Iterator[Conflict]:
    """`client` are a client's settings by the Java client's names or librdkafka's."""
    session = client.get("session.timeout.ms", "")
    shortest, longest = (
        _number(broker, "group.min.session.timeout.ms", 0),
        _number(broker, "group.max.session.timeout.ms", _LONG_MAX),
    )
    if session.isdigit() and not shortest <= int(session) <= longest:
        yield Conflict(
            "session.timeout.ms, group.min.session.timeout.ms, group.max.session.timeout.ms",
            f"session.timeout.ms={session} is outside what brokers take ({shortest} to {longest}): consumers cannot join a group",
            "set session.timeout.ms within these bounds, or widen them on the brokers",
        )
    beat = client.get("heartbeat.interval.ms", "")
    if beat.isdigit() and 3 * int(beat) > _number(client, "session.timeout.ms", _JAVA_SESSION):
        yield Conflict(
            "heartbeat.interval.ms, session.timeout.ms",
            f"heartbeat.interval.ms={beat} is more than a third of session.timeout.ms: a lost heartbeat or two make the group rebalance",
            "lower heartbeat.interval.ms",
        )
    size = client.get("max.request.size") or client.get("message.max.bytes", "")
    if size.isdigit() and int(size) > _number(broker, "message.max.bytes", _LONG_MAX):
        yield Conflict(
            "max.request.size, message.max.bytes",
            f"the producer sends up to {int(size):,} bytes (max.request.size) and brokers take {broker['message.max.bytes']} "
            "(message.max.bytes): larger records are refused",
            "raise max.message.bytes of the topic, or lower max.request.size",
        )
    timeout = client.get("transaction.timeout.ms", "")
    if timeout.isdigit() and int(timeout) > _number(broker, "transaction.max.timeout.ms", _LONG_MAX):
        yield Conflict(
            "transaction.timeout.ms, transaction.max.timeout.ms",
            f"transaction.timeout.ms={timeout} is more than brokers take ({broker['transaction.max.timeout.ms']}): the producer is refused",
            "lower transaction.timeout.ms, or raise transaction.max.timeout.ms on the brokers",
        )


def in_quotas(values: Mapping[str, float], broker: Values) -> Iterator[Conflict]:
    """A quota that one batch uses up for longer than all of its windows throttles every request."""
    for name in ("producer_byte_rate", "consumer_byte_rate"):
        rate = values.get(name)
        seconds = _number(broker, "quota.window.num", 11) * _number(broker, "quota.window.size.seconds", 1)
        largest = _number(broker, "message.max.bytes", 1_048_588)
        if rate is not None and rate * seconds < largest:
            yield Conflict(
                f"{name}, message.max.bytes",
                f"{name}={rate:,.0f} is used up for {_days(1000 * largest / max(rate, 1e-9))} by one batch of message.max.bytes "
                f"({largest:,})",
                f"raise {name}, or have these clients send smaller batches",
                is_serious=False,
            )

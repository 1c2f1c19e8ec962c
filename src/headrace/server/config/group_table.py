"""The settings that a consumer group or a share group can have of its own; the broker's group.* are the defaults of most."""

# One row per setting, however long, so that it reads as a table.

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.server.config.definition import ConfigType, Setting, Value, at_least, between, one_of, table

# fmt: off
BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT

DURATION = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE)
"""ISO 8601 as Java's Duration writes it, without a sign."""


def _offset_reset(value: Value) -> str | None:
    text = str(value).lower()
    if text in ("latest", "earliest"):
        return None
    strategy, _, duration = text.partition(":")
    if strategy == "by_duration" and DURATION.fullmatch(duration):
        return None
    return "Invalid value for configuration: the value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"


def _topic_name(value: Value) -> str | None:
    return "the name of a dead-letter topic cannot start with __" if str(value).startswith("__") else None


GROUP_SETTINGS: Mapping[str, Setting] = table(
    [
        Setting("consumer.heartbeat.interval.ms", INT, 5000, "The heartbeat interval of the members of this consumer group.", at_least(1)),
        Setting("consumer.session.timeout.ms", INT, 45_000, "How long a member of this consumer group may be silent before it is taken for dead.", at_least(1)),
        Setting("share.heartbeat.interval.ms", INT, 5000, "The heartbeat interval of the members of this share group.", at_least(1)),
        Setting("share.session.timeout.ms", INT, 45_000, "How long a member of this share group may be silent before it is taken for dead.", at_least(1)),
        Setting("share.record.lock.duration.ms", INT, 30_000, "How long a member may take for a record before others get it.", at_least(1000)),
        Setting("share.delivery.count.limit", INT, 5, "How often a record is delivered before it is given up.", at_least(2)),
        Setting("share.partition.max.record.locks", INT, 2000, "How many records of a partition may be in flight in this group.", between(10, 20_000)),
        Setting("share.auto.offset.reset", STRING, "latest", "Where the group begins in a partition: `latest`, `earliest`, or `by_duration:` and how long ago (`by_duration:PT1H`).", _offset_reset),
        Setting("share.isolation.level", STRING, "read_uncommitted", "Whether records of transactions are delivered before they are decided, and when they are aborted, or only when they are committed (`read_committed`).", one_of("read_committed", "read_uncommitted")),
        Setting("share.renew.acknowledge.enable", BOOLEAN, True, "Whether a member may prolong the lock of a record that it still works on."),
        Setting("errors.deadletterqueue.topic.name", STRING, "", "The topic that gets records which the group refuses or which were delivered too often; empty for none.", _topic_name),
        Setting("errors.deadletterqueue.copy.record.enable", BOOLEAN, False, "Whether key and value of such a record are copied there; otherwise only the headers that say which one it was."),
    ]
)
# fmt: on

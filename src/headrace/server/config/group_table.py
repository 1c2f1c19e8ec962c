"""The settings that a consumer group can have of its own; the broker's group.consumer.* are their defaults."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.server.config.definition import ConfigType, Setting, at_least, table

GROUP_SETTINGS: Mapping[str, Setting] = table(
    [
        Setting(
            "consumer.heartbeat.interval.ms",
            ConfigType.INT,
            5000,
            "The heartbeat interval of the members of this group.",
            at_least(1),
        ),
        Setting(
            "consumer.session.timeout.ms",
            ConfigType.INT,
            45_000,
            "How long a member of this group may be silent before it is taken for dead.",
            at_least(1),
        ),
    ]
)

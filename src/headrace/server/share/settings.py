"""The settings of share groups: each group's own, or the broker's, and the feature level that permits share groups at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.server.cluster.features import SHARE_VERSION, level
from headrace.server.cluster.image import ConfigResource, MetadataImage, ResourceType
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.group_table import DURATION
from headrace.wire.errors import ErrorCode, KafkaError

DEAD_LETTERS_LEVEL = 2
KEPT_GROUPS = 1000
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    lock_ms: int
    delivery_limit: int
    most_locks: int
    reset: str
    """`earliest`, `latest`, or `by_duration:` with an ISO 8601 duration."""
    read_committed: bool
    may_renew: bool
    dead_letter_topic: str
    """Empty for none."""
    copy_records: bool

    @property
    def reset_duration_ms(self) -> int | None:
        """How long ago the group begins; None where it begins at an end of the log."""
        strategy, _, duration = self.reset.partition(":")
        if strategy != "by_duration":
            return None
        found = DURATION.fullmatch(duration)
        assert found is not None
        days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
        return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


class ShareSettings:
    def __init__(self, image: Callable[[], MetadataImage], config: Callable[[], BrokerConfig]) -> None:
        self._image = image
        self._config = config
        self._known: dict[str, tuple[Mapping[str, str], BrokerConfig, int, ShareGroupSettings]] = {}

    @property
    def level(self) -> int:
        return level(self._image(), SHARE_VERSION)

    def require(self) -> None:
        """UNSUPPORTED_VERSION while the cluster may have brokers that know no share groups."""
        if self.level < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "Share groups are not switched on; when every broker has this version, "
                "raise the feature level with 'headrace features set share.version=2'.",
            )

    def of(self, group_id: str) -> ShareGroupSettings:
        own = self._image().configs.get(ConfigResource(ResourceType.GROUP, group_id), NOTHING)
        config, current = self._config(), self.level
        known = self._known.get(group_id)
        if known is not None and known[0] is own and known[1] is config and known[2] == current:
            return known[3]
        if len(self._known) >= KEPT_GROUPS:
            self._known.clear()
        settings = _read(own, config, current)
        self._known[group_id] = (own, config, current, settings)
        return settings


def _read(own: Mapping[str, str], config: BrokerConfig, current: int) -> ShareGroupSettings:
    dead_letter_topic = own.get("errors.deadletterqueue.topic.name") or ""
    return ShareGroupSettings(
        lock_ms=int(
            own.get("share.record.lock.duration.ms") or config.integer("group.share.record.lock.duration.ms")
        ),
        delivery_limit=int(
            own.get("share.delivery.count.limit") or config.integer("group.share.delivery.count.limit")
        ),
        most_locks=int(
            own.get("share.partition.max.record.locks")
            or config.integer("group.share.partition.max.record.locks")
        ),
        reset=(own.get("share.auto.offset.reset") or "latest").lower(),
        read_committed=own.get("share.isolation.level") == "read_committed",
        may_renew=(own.get("share.renew.acknowledge.enable") or "true").lower() == "true",
        dead_letter_topic=dead_letter_topic if current >= DEAD_LETTERS_LEVEL else "",
        copy_records=(own.get("errors.deadletterqueue.copy.record.enable") or "").lower() == "true",
    )

"""What a link's settings say beside how to reach the source, under MirrorMaker 2's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.link.settings import KafkaSettings
from headrace.server.cluster.image import MirrorLink
from headrace.wire.errors import ErrorCode, KafkaError

TOPICS_INTERVAL = "refresh.topics.interval.seconds"
GROUPS_INTERVAL = "sync.group.offsets.interval.seconds"
_DEFAULTS = {TOPICS_INTERVAL: 5, GROUPS_INTERVAL: 5}
_SECRET = ("password", "jaas", "secret", "key", "token")


@dataclass(frozen=True, slots=True)
class LinkOptions:
    connection: KafkaSettings
    topics_seconds: int
    """How often the source's topics, partitions and settings are looked at."""
    groups_seconds: int
    """How often the offsets of groups are."""

    @classmethod
    def of(cls, link: MirrorLink) -> LinkOptions:
        """SettingsError, or INVALID_CONFIG, when they cannot be used."""
        client = {name: value for name, value in link.settings.items() if name not in _DEFAULTS}
        connection = KafkaSettings.of(
            client, f"the mirror link '{link.name}'", client_id=f"headrace-mirror-{link.name}"
        )
        return cls(
            connection, _seconds(link.settings, TOPICS_INTERVAL), _seconds(link.settings, GROUPS_INTERVAL)
        )


def _seconds(settings: Mapping[str, str], name: str) -> int:
    text = settings.get(name, str(_DEFAULTS[name])).strip()
    if not text.isdigit() or not 1 <= int(text) <= 86_400:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{name} is '{text}'; it is a number of seconds from 1 to 86400."
        )
    return int(text)


def shown(settings: Mapping[str, str]) -> dict[str, str | None]:
    """The settings as they may be shown: None for what may be a secret."""
    return {
        name: None if any(part in name.lower() for part in _SECRET) else value
        for name, value in sorted(settings.items())
    }

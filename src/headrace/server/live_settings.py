"""Settings that change while the broker runs: those that act are passed to the engines, and the log names those that do not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import ConfigResource, MetadataImage, ResourceType
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.config.broker import BrokerConfig, inert_settings
from headrace.server.config.inert import INERT_IN_TOPICS, without_effect

log = logging.getLogger("headrace")

Configure = Callable[[BrokerConfig], None]


def follow_settings(cluster: ClusterNode, begun_with: BrokerConfig, configure: Configure) -> None:
    """Call `configure` with the settings the cluster has for this broker, now if there are any and whenever they change."""
    known = begun_with

    def changed(old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        nonlocal known
        if cluster.controller is not None:
            _warn(inert for change in changes for inert in _inert(change))
        if cluster.config is not known:
            known = cluster.config
            configure(known)

    if cluster.config is not known:
        known = cluster.config
        _warn(inert_settings({**known.dynamic_default, **known.dynamic_broker}, running=True))
        configure(known)
    cluster.subscribe(changed)


def _inert(change: Change) -> Iterator[tuple[str, str]]:
    if not isinstance(change, ConfigsChanged):
        return
    given = {name: value for name, value in change.values.items() if value is not None}
    if change.resource.type is ResourceType.BROKER:
        yield from inert_settings(given, running=True)
    elif change.resource.type is ResourceType.TOPIC:
        yield from _inert_in_topic(change.resource, given)


def _inert_in_topic(resource: ConfigResource, given: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in given:
        if name in INERT_IN_TOPICS:
            yield f"{name} of topic {resource.name}", INERT_IN_TOPICS[name]


def _warn(inert: Iterator[tuple[str, str]]) -> None:
    found = list(inert)
    if found:
        log.warning("%s", without_effect(found))

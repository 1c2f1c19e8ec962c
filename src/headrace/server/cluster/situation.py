"""What the controller bases a decision on, and what a decision is.

A decision is a pure function: given the situation, it returns a result and the changes to append before the result is reported.
`Controller.decide` carries it out; `decisions.py` has the decisions that requests ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from headrace.server.cluster.changes import Change
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.outcome import Outcome
from headrace.server.config.broker import BrokerConfig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a decision is made from."""

    image: MetadataImage
    """Everything decided so far, including changes that are not in the store yet."""
    config: BrokerConfig
    """The controller's own settings as of `image`."""
    controller_id: int
    full: frozenset[int] = frozenset()
    """Brokers that report a full disk."""
    cordoned: frozenset[int] = frozenset()
    """Brokers that take no new replicas."""

    def unclean(self, topic: str) -> bool:
        """Whether `topic` allows unclean leader election."""
        own = self.image.topic_configs(topic).get("unclean.leader.election.enable")
        if own is None:
            return self.config.boolean("unclean.leader.election.enable")
        return own.strip().lower() == "true"

    def at(self, image: MetadataImage) -> Situation:
        """The same situation with another image, and the settings that image holds."""
        if image.configs is self.image.configs:
            return replace(self, image=image)
        dynamic = image.cluster_configs(), image.broker_configs(self.controller_id)
        return replace(self, image=image, config=self.config.with_dynamic(*dynamic))

    def after(self, changes: Iterable[Change]) -> Situation:
        """The situation once `changes` are made."""
        return self.at(apply_changes(self.image, self.image.offset, changes))


Decision = Callable[[Situation], Outcome[T]]

"""One look at the cluster: what several rules need is asked for once, and what cannot be had is remembered as that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from headrace.client.administration import brokers, health, topics
from headrace.client.administration.session import Session
from headrace.client.errors import ClientError
from headrace.client.lag import GroupLag

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lags:
    measured: list[GroupLag]
    unmeasured: Mapping[str, str]
    """Groups whose lag is not known now, and why."""


class Sight:
    def __init__(self, session: Session, now: float, lags: Callable[[], Lags]) -> None:
        self.session = session
        self.now = now
        self._measure_lags = lags
        self._known: dict[str, Any] = {}

    @property
    def brokers(self) -> brokers.Description:
        return self._once("brokers", lambda: brokers.describe(self.session))

    @property
    def health(self) -> health.Health:
        return self._once("health", lambda: health.check_health(self.session))

    @property
    def topics(self) -> list[str]:
        return self._once("topics", lambda: topics.names(self.session, internal=False))

    @property
    def lags(self) -> Lags:
        return self._once("lags", self._measure_lags)

    def _once(self, name: str, ask: Callable[[], T]) -> T:
        if name not in self._known:
            try:
                self._known[name] = ask()
            except ClientError as error:
                self._known[name] = error
        found = self._known[name]
        if isinstance(found, ClientError):
            raise found
        return cast(T, found)

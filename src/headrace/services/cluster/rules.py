"""The rules a registry holds: which can be applied, in which order, and how they change a URL."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from headrace.services import points
from headrace.services.cluster.configurator import Configurator
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.cluster")

_NUMBERS = frozenset(
    (
        "timeout",
        "retries",
        "weight",
        "warmup",
        "executes",
        "actives",
        "accepts",
        "threads",
        "queues",
        "payload",
        "heartbeat",
        "connections",
        "forks",
        "tps",
        "priority",
    )
)


def to_configurators(urls: Iterable[URL]) -> list[Configurator]:
    """The rules in these URLs, in the order they apply; `empty://` takes all of them back."""
    configurators: list[Configurator] = []
    for url in urls:
        if url.protocol == "empty":
            return []
        if not set(url.parameters) - {"anyhost"}:
            configurators.clear()
            continue
        problem = _problem(url)
        if problem is not None:
            logger.error("The rule %s is left out: %s", url, problem)
            continue
        configurators.append(points.CONFIGURATORS.get(url.protocol)(url))
    return sorted(configurators, key=lambda configurator: configurator.rank)


def _problem(rule: URL) -> str | None:
    """Why a rule cannot be applied; an administrator's typo must not break a live service."""
    if not points.CONFIGURATORS.has(rule.protocol):
        return f"there is no configurator {rule.protocol!r}"
    return number_problem(rule)


def number_problem(url: URL) -> str | None:
    """Which of the numbers that calls depend on is not a number."""
    for key, value in url.parameters.items():
        if value and key.rpartition(".")[2] in _NUMBERS and not value.removeprefix("-").isdecimal():
            return f"{key}={value} is not a whole number"
    return None


def configure(configurators: Iterable[Configurator], url: URL) -> URL:
    for configurator in configurators:
        url = configurator.configure(url)
    return url

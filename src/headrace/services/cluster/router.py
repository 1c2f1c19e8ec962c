"""Condition routes from the registry: `host = 10.20.* & method = get* => host != 10.20.3.4`.

Left of `=>` is which calls a rule is for (empty: all), right of it which providers they may reach (empty: none).
A rule that leaves no provider is passed over unless it says `force=true`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from headrace.services.invocation import Invocation
from headrace.services.invoker import Invoker
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.cluster")

_PART = re.compile(r"([&!=,]*)\s*([^&!=,\s]+)")


@dataclass(slots=True)
class _Values:
    wanted: list[str] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)

    def accepts(self, value: str, consumer: URL | None) -> bool:
        if any(_matches(pattern, value, consumer) for pattern in self.unwanted):
            return False
        return not self.wanted or any(_matches(pattern, value, consumer) for pattern in self.wanted)


def _matches(pattern: str, value: str, consumer: URL | None) -> bool:
    if pattern.startswith("$") and consumer is not None:  # `$host`: the consumer's own value
        pattern = _value(consumer, pattern[1:], None) or ""
    return fnmatchcase(value, re.sub(r"([?\[])", r"[\1]", pattern))


class Router:
    """One rule."""

    def __init__(self, url: URL) -> None:
        rule = url.get_decoded("rule").replace("consumer.", "").replace("provider.", "")
        if not rule.strip():
            raise ValueError(f"the route {url} has no rule")
        when, arrow, then = rule.partition("=>")
        if not arrow:
            when, then = "", rule
        self.priority = url.get_int("priority", 0)
        self._enabled = url.get_bool("enabled", True)
        self._force = url.get_bool("force", False)
        self._when = {} if when.strip() in ("", "true") else _parse(when)
        self._then = None if then.strip() in ("", "false") else _parse(then)

    def route(self, invokers: Sequence[Invoker], consumer: URL, invocation: Invocation) -> Sequence[Invoker]:
        if not self._enabled or not _meets(self._when, consumer, None, invocation):
            return invokers
        if self._then is None:
            logger.warning("The current consumer in the service blacklist. service: %s", consumer.service_key)
            return ()
        chosen = [invoker for invoker in invokers if _meets(self._then, invoker.url, consumer, None)]
        return chosen if chosen or self._force else invokers


def _parse(rule: str) -> dict[str, _Values]:
    conditions: dict[str, _Values] = {}
    values: _Values | None = None
    into: list[str] | None = None
    for separator, content in _PART.findall(rule):
        if separator in ("", "&"):
            values = conditions.setdefault(content, _Values())
            into = None
        elif separator in ("=", "!=") and values is not None:
            into = values.wanted if separator == "=" else values.unwanted
            into.append(content)
        elif separator == "," and into:
            into.append(content)
        else:
            raise ValueError(f"Illegal route rule {rule!r}: {separator!r} before {content!r} is out of place")
    return conditions


def _meets(
    conditions: dict[str, _Values], url: URL, consumer: URL | None, invocation: Invocation | None
) -> bool:
    for key, values in conditions.items():
        value = _value(url, key, invocation)
        if value is None:
            if values.wanted:
                return False
        elif not values.accepts(value, consumer):
            return False
    return True


def _value(url: URL, key: str, invocation: Invocation | None) -> str | None:
    if key in ("method", "methods") and invocation is not None:
        return invocation.method_name
    whole = {"address": url.address, "host": url.host, "port": str(url.port), "protocol": url.protocol}
    return whole.get(key) or url.get(key) or None


def to_routers(urls: Iterable[URL]) -> list[Router]:
    """The rules in these URLs, the most important first; a rule that cannot be read is left out and logged."""
    routers = []
    for url in urls:
        if url.protocol == "empty":
            continue
        try:
            routers.append(Router(url))
        except ValueError as error:
            logger.error("convert router url to router error, url: %s: %s", url, error)
    return sorted(routers, key=lambda router: -router.priority)


def route(
    routers: Sequence[Router], invokers: Sequence[Invoker], consumer: URL, invocation: Invocation
) -> Sequence[Invoker]:
    for router in routers:
        invokers = router.route(invokers, consumer, invocation)
    return invokers

"""Rules that change a URL from outside: `override://…` sets parameters, `absent://…` only fills gaps.

A rule selects URLs by host, port, application, side and `~`-conditions; it sets its other parameters on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from headrace.services.net import local_host
from headrace.services.url import ANY, ANYHOST, URL

# Parameters of a rule that select URLs or say how it is stored, so they are never set on a URL.
_CONDITIONS = frozenset(
    (
        "category",
        "check",
        "dynamic",
        "enabled",
        "group",
        "version",
        "application",
        "side",
        "configVersion",
        "compatible_config",
        "priority",
        "providerAddresses",
        "interface",
        "anyhost",
    )
)


class Configurator(ABC):
    """One rule."""

    def __init__(self, url: URL) -> None:
        self.url = url

    @abstractmethod
    def change(self, url: URL, parameters: dict[str, str]) -> URL:
        """Apply the rule's parameters to a URL it matches."""

    def configure(self, url: URL) -> URL:
        """The URL after the rule, or the same one when the rule does not apply to it."""
        rule = self.url
        if not rule.get_bool("enabled", True) or rule.host is None or url.host is None:
            return url
        if not self._is_for(url):
            return url
        changes = {k: v for k, v in rule.parameters.items() if k not in _CONDITIONS and not k.startswith("~")}
        return self.change(url, changes)

    def _is_for(self, url: URL) -> bool:
        rule = self.url
        if rule.port:  # a rule with a port is for one provider, there and in the consumers that use it
            host = url.host if url.port == rule.port else None
        elif url.get("side") == "consumer":
            host = local_host()
        else:
            host = ANYHOST
        if host is None or rule.host not in (ANYHOST, host):
            return False
        addresses = rule.get_list("providerAddresses")
        if addresses and not any(a in (url.address, ANYHOST) or a.startswith(ANYHOST) for a in addresses):
            return False
        application = rule.get("application") or rule.username
        if application not in (None, ANY, url.get("application") or url.username):
            return False
        for key, value in rule.parameters.items():
            condition = key.startswith("~") or key == "side"
            if condition and value not in ("", ANY, url.get(key.removeprefix("~"))):
                return False
        return True

    @property
    def rank(self) -> tuple[str, int]:
        """Rules for any host come first, so that a rule for one host is applied after them and wins."""
        return (self.url.host or "", self.url.get_int("priority", 0))


class OverrideConfigurator(Configurator):
    """Sets the rule's parameters."""

    def change(self, url: URL, parameters: dict[str, str]) -> URL:
        return url.add(parameters)


class AbsentConfigurator(Configurator):
    """Sets the rule's parameters where the URL has none."""

    def change(self, url: URL, parameters: dict[str, str]) -> URL:
        return url.add_if_absent(parameters)


ConfiguratorFactory = Callable[[URL], Configurator]

"""References such as `${env:NAME}` in a broker's settings (`link/references.py` resolves them)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from headrace.link.errors import SettingsError
from headrace.link.references import Resolver, refers
from headrace.server.config.definition import ConfigError, Setting

log = logging.getLogger("headrace")

_PROVIDERS = "config.providers"


class Resolved:
    """A broker's static settings; those that only name providers are not among them."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.settings = {
            name: text
            for name, text in given.items()
            if name != _PROVIDERS and not name.startswith(f"{_PROVIDERS}.")
        }
        try:
            self._resolver = Resolver(given)
        except SettingsError as error:
            raise ConfigError(str(error)) from None

    def value(self, name: str, text: str, place: str) -> str:
        try:
            return self._resolver.value(name, text)
        except SettingsError as error:
            raise ConfigError(f"{place}: {error}" if place else str(error)) from None


def with_secrets(given: Mapping[str, str], base: Callable[[str], Setting | None]) -> dict[str, str]:
    """Dynamic settings with the references in passwords resolved, on this machine. Others may be shown to clients and stay as they
    are. One that cannot be resolved stays, too, and is of no use."""
    found = dict(given)
    for name, text in given.items():
        setting = base(name)
        if setting is not None and setting.sensitive and refers(text):
            try:
                found[name] = Resolver({}).value(name, text)
            except SettingsError as error:
                log.error("%s", error)
    return found

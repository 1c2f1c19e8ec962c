"""A broker's settings file for the doctor, read with the tables of the server, so that both say the same about it."""

from __future__ import annotations

from pathlib import Path

from headrace.cli.parsing.properties import load_with_places
from headrace.server.config.broker import BrokerConfig, inert_settings
from headrace.server.config.definition import ConfigError
from headrace.server.config.describe import ConfigEntry, describe_broker, describe_topic
from headrace.watch.doctor.scene import SettingsFile

_CERTIFICATES = ("certificate.chain", "truststore.certificates")
"""Public, though settings of this type are not shown."""
_SUMMED_UP = "Settings without effect:"


def read(path: Path) -> SettingsFile:
    """Failure when the file cannot be read; what is wrong in it is part of the answer."""
    given, places = load_with_places(path)
    try:
        config = BrokerConfig.load(given, places=places)
    except ConfigError as error:
        return SettingsFile(str(path), {}, invalid=str(error))
    public = {name: text for name, text in config.static.items() if name.endswith(_CERTIFICATES)}
    return SettingsFile(
        str(path),
        {**_values(describe_broker(config)), **public},
        _values(describe_topic(config, {})),
        unknown=tuple(each for each in config.warnings if not each.startswith(_SUMMED_UP)),
        retired=config.notices,
        inert=tuple(inert_settings(config.static)),
    )


def _values(entries: list[ConfigEntry]) -> dict[str, str]:
    return {each.name: each.value for each in entries if each.value is not None}

"""Writes the tables of docs/configuration.md from the settings' definitions: `.venv/bin/python tools/generate_configuration.py`.

Everything above the marker line in that page is written by hand and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.server.config import broker_table
from headrace.server.config.definition import INT_MAX, LONG_MAX, Setting, UpdateMode, format_value
from headrace.server.config.group_table import GROUP_SETTINGS
from headrace.server.config.inert import (
    INERT,
    INERT_IN_TOPICS,
    INERT_WHILE_RUNNING,
    REFUSED,
    REFUSED_IN_TOPICS,
    Refusal,
)
from headrace.server.config.topic import TOPIC_SYNONYMS
from headrace.server.config.topic_table import TOPIC_SETTINGS

PAGE = Path(__file__).parent.parent / "docs/configuration.md"
MARKER = "<!-- The tables below are made by tools/generate_configuration.py. -->"

BROKER_GROUPS = {
    "Identity and network": broker_table._IDENTITY_AND_NETWORK,
    "Topics and logs": broker_table._TOPICS_AND_LOG,
    "Replication and the cluster": broker_table._REPLICATION_AND_CONTROLLER,
    "Groups and transactions": broker_table._GROUPS_AND_TRANSACTIONS,
    "Quotas": broker_table._QUOTAS,
    "Security": broker_table._SECURITY,
}


def render(page: str) -> str:
    above = page.partition(MARKER)[0]
    parts = [above + MARKER, "", "## Topic settings", ""]
    parts += ["| setting | default | broker setting behind it | meaning |", "| --- | --- | --- | --- |"]
    for setting in _public(TOPIC_SETTINGS.values()):
        behind = ", ".join(f"`{synonym.name}`" for synonym in TOPIC_SYNONYMS.get(setting.name, ()))
        parts.append(
            f"| `{setting.name}` | {_default(setting)} | {behind} | {_meaning(setting, INERT_IN_TOPICS, REFUSED_IN_TOPICS)} |"
        )
    for title, settings in BROKER_GROUPS.items():
        parts += ["", f"## Broker settings: {title.lower()}", ""]
        parts += ["| setting | default | change while running | meaning |", "| --- | --- | --- | --- |"]
        for setting in _public(settings):
            how = {UpdateMode.READ_ONLY: "", UpdateMode.PER_BROKER: "per broker"}.get(setting.update, "yes")
            meaning = _meaning(setting, INERT, REFUSED)
            parts.append(f"| `{setting.name}` | {_default(setting)} | {how} | {meaning} |")
    parts += ["", "## Group settings", "", "| setting | default | meaning |", "| --- | --- | --- |"]
    for setting in GROUP_SETTINGS.values():
        parts.append(f"| `{setting.name}` | {_default(setting)} | {setting.doc} |")
    return "\n".join(parts) + "\n"


def _public(settings: Iterable[Setting]) -> list[Setting]:
    return [setting for setting in settings if not setting.internal]


def _meaning(setting: Setting, inert: Mapping[str, str], refused: Mapping[str, Refusal]) -> str:
    """What it is for; and when it does not act, that and why."""
    if setting.name in inert:
        return f"{setting.doc} **Does not act:** {inert[setting.name]}."
    if setting.name in refused:
        refusal, default = refused[setting.name], format_value(setting.default) or ""
        if default in refusal.taken:
            taken = " or ".join(f"`{value}`" if value else "nothing" for value in refusal.taken)
            what = f"Any value but {taken}"
        else:  # left out it says nothing, but whoever writes it relies on it
            what = f"Setting it to `{default}`"
        return f"{setting.doc} **{what} is refused:** {refusal.why}"
    if inert is INERT and setting.name in INERT_WHILE_RUNNING:
        return (
            f"{setting.doc} **Changed while running it does not act:** {INERT_WHILE_RUNNING[setting.name]}."
        )
    return setting.doc


def _default(setting: Setting) -> str:
    if setting.default in (LONG_MAX, INT_MAX) or (
        isinstance(setting.default, float) and setting.default > 1e300
    ):
        return "no limit"
    text = format_value(setting.default)
    if text is None:
        return "none"
    return f"`{text}`" if text else "empty"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))

"""Writes docs/kafka-settings.md: every setting of Kafka's brokers, topics and groups, and what it does here:
`.venv/bin/python tools/generate_settings_table.py`.

tools/kafka_settings.tsv has the settings of the newest broker on Maven (`python -m interop.kafka.golden` writes it); `NEWER` those
that a newer client jar names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.server.config.broker_table import BROKER_SETTINGS
from headrace.server.config.definition import Setting, format_value
from headrace.server.config.group_table import GROUP_SETTINGS
from headrace.server.config.inert import INERT, INERT_IN_TOPICS, REFUSED, REFUSED_IN_TOPICS, Refusal
from headrace.server.config.retired import remark
from headrace.server.config.topic_table import TOPIC_SETTINGS

PAGE = Path(__file__).parent.parent / "docs/kafka-settings.md"
SETTINGS = Path(__file__).with_name("kafka_settings.tsv")
LISTED = "4.3.0"
NEWER = {
    ("topic", "errors.deadletterqueue.group.enable"): "false",
    ("topic", "max.decompressed.message.bytes"): "\\N",
    ("topic", "remote.copy.lag.bytes"): "\\N",
    ("topic", "remote.copy.lag.ms"): "\\N",
}
"""Settings of topics that the client jar of 4.4 names, with those defaults that it tells."""

TABLES: Mapping[str, tuple[Mapping[str, Setting], Mapping[str, str], Mapping[str, Refusal]]] = {
    "broker": (BROKER_SETTINGS, INERT, REFUSED),
    "topic": (TOPIC_SETTINGS, INERT_IN_TOPICS, REFUSED_IN_TOPICS),
    "group": (GROUP_SETTINGS, {}, {}),
}
NOT_OFFERED = {
    "share.": "refused: share groups are not offered",
    "errors.deadletterqueue.": "refused: share groups are not offered",
    "streams.": "refused: streams groups are not offered",
}
RESOLVED = "acts: `${env:NAME}`, `${file:PATH:KEY}` and `${dir:PATH:KEY}` are resolved, with or without it"

HEAD = """# Every setting of Kafka

What each setting of Apache Kafka's brokers, topics and groups does here: it *acts*, or the table says why not. Settings that only
Headrace has, and what each setting means, are in [configuration.md](configuration.md).

This page is made by `tools/generate_settings_table.py` from the program's own tables, and a test holds it to them. The list of
settings is that of Kafka {version}, the newest broker on Maven, and what the client library of 4.4 adds to it.
"""


def render() -> str:
    rows = known()
    parts = [HEAD.format(version=LISTED)]
    for kind in TABLES:
        named = {name: default for (of, name), default in rows.items() if of == kind}
        acting = sum(verdict(kind, name, default).startswith("acts") for name, default in named.items())
        parts += [
            f"## Settings of {kind}s",
            "",
            f"{acting} of {len(named)} act.",
            "",
            "| setting | Kafka's default | here |",
            "| --- | --- | --- |",
            *(
                f"| `{name}` | {_shown(default)} | {verdict(kind, name, default)} |"
                for name, default in sorted(named.items())
            ),
            "",
        ]
    return "\n".join(parts)


def known() -> dict[tuple[str, str], str]:
    rows = [line.split("\t") for line in SETTINGS.read_text().splitlines()]
    return {(kind, name): default for kind, name, default in rows} | NEWER


def verdict(kind: str, name: str, default: str) -> str:
    """What a setting does here; KeyError for one that nobody has decided about."""
    table, inert, refused = TABLES[kind]
    setting = table.get(name)
    if setting is None:
        if name == "config.providers":
            return RESOLVED
        said = remark(name)
        if said is not None:
            return said.removeprefix(f"{name} ").removesuffix(".")
        return next(why for prefix, why in NOT_OFFERED.items() if name.startswith(prefix))
    if name in inert:
        return f"does not act: {inert[name]}"
    if name in refused:
        return f"other values than the default are refused: {refused[name].why.removesuffix('.')}"
    ours = format_value(setting.default)
    if (ours or "").replace(" ", "") != ("" if default == "\\N" else default.replace(" ", "")):
        return f"acts; the default is {_shown(ours or '')} here"
    return "acts"


def _shown(default: str) -> str:
    if default == "\\N":
        return "none"
    return f"`{default}`".replace("|", "\\|") if default else "empty"


if __name__ == "__main__":
    PAGE.write_text(render())

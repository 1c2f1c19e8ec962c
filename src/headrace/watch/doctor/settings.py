"""Settings: those that fight each other, those that do not act, and what a broker would make of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from headrace.client.administration import quotas
from headrace.client.administration.errors import Refused
from headrace.client.degrade import notes
from headrace.watch.doctor import conflicts
from headrace.watch.doctor.conflicts import Conflict
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, error, listed, note, warning
from headrace.watch.doctor.scene import Scene
from headrace.wire.errors import ErrorCode

_NoteDown = Callable[[str, Iterator[Conflict]], None]
"""Takes down the problems of one place."""


def _conflicts(scene: Scene) -> Iterator[Finding]:
    found: dict[str, list[tuple[str, Conflict]]] = {}

    def note_down(place: str, problems: Iterator[Conflict]) -> None:
        for each in problems:
            found.setdefault(each.rule, []).append((place, each))

    if scene.file is not None and not scene.file.invalid:
        own = scene.file.settings
        note_down(scene.file.path, conflicts.in_brokers(own, None))
        note_down(f"topics by {scene.file.path}", conflicts.in_topic(scene.file.topic_defaults, own))
    if scene.watch is not None:
        _ask_cluster(scene, note_down)
    for places in found.values():
        yield _finding(places)


def _ask_cluster(scene: Scene, note_down: _NoteDown) -> None:
    brokers = scene.broker_settings
    there = frozenset(scene.topic_settings)
    for broker, own in brokers.items():
        note_down(f"broker {broker}", conflicts.in_brokers(own, len(scene.description.brokers), there))
        note_down(f"clients of broker {broker}", conflicts.in_client(scene.client, own))
    shared: Mapping[str, str] = next(iter(brokers.values()), {})
    for topic, own in scene.topic_settings.items():
        note_down(f"topic {topic}", conflicts.in_topic(own, shared))
        if not topic.startswith("__") and not topic.endswith(notes.SUFFIX):  # no group reads notes
            note_down(f"topic {topic}", conflicts.with_offsets(own, shared))
    try:
        limited = quotas.describe(scene.session)
    except Refused as refused:
        if refused.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        limited = []
    for each in limited:
        entity = " ".join(f"{kind} {name or 'by default'}" for kind, name in each.entity)
        note_down(f"quota of {entity}", conflicts.in_quotas(each.values, shared))


def _finding(places: list[tuple[str, Conflict]]) -> Finding:
    names = [place for place, _ in places]
    first = places[0][1]
    say = warning if any(each.is_serious for _, each in places) else note
    more = "" if len(names) == 1 else f" ({len(names)} in all: {listed(names)})"
    return say(
        f"In {names[0]}: {first.sentence}{more}.", f"{first.remedy[0].upper()}{first.remedy[1:]}.", names
    )


def _file(scene: Scene) -> Iterator[Finding]:
    file = scene.file
    if file is None:
        return
    if file.invalid:
        yield error(
            f"A broker would not start with {file.path}: {file.invalid}", "Correct that setting.", [file.path]
        )
    for sentence in file.unknown:
        yield warning(f"{file.path}: {sentence}", "Correct or remove it; it is ignored.")
    for sentence in file.retired:
        yield note(f"{file.path}: {sentence}", "Remove it from the file.")


def _inert(scene: Scene) -> Iterator[Finding]:
    found: dict[str, tuple[str, list[str]]] = {}
    if scene.file is not None:
        for name, reason in scene.file.inert:
            found.setdefault(name, (reason, []))[1].append(scene.file.path)
    if scene.watch is not None:
        for broker, settings in scene.described_brokers.items():
            if not scene.is_headrace(broker):
                continue  # the reasons are Headrace's
            for each in settings:
                why = scene.inert_in_brokers.get(each.name)
                if why is not None and not each.is_default:
                    found.setdefault(each.name, (why, []))[1].append(f"broker {broker}")
    for name, (reason, places) in sorted(found.items()):
        yield note(f"{name}, set in {listed(places)}, has no effect: {reason}.", "Remove it.", places)


CONFLICTS = Check(
    "conflicting-settings",
    Severity.WARNING,
    "settings of brokers, topics, quotas and clients that contradict each other",
    Needs.SETTINGS,
    _conflicts,
)
FILE = Check(
    "settings-file",
    Severity.ERROR,
    "a broker's file: values it refuses, unknown names, and settings of other Kafka generations",
    Needs.SETTINGS,
    _file,
)
INERT = Check(
    "inert-settings",
    Severity.NOTE,
    "settings without effect in Headrace, in a file or on its running brokers",
    Needs.SETTINGS,
    _inert,
)

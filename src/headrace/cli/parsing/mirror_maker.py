"""A properties file of MirrorMaker 2, and the mirror links that do the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.cli.failure import Failure

TOPICS_EXCLUDED = r".*[\-\.]internal, .*\.replica, __.*"
GROUPS_EXCLUDED = "console-consumer-.*, connect-.*, __.*"
"""MirrorMaker 2's defaults."""

_KEPT = ("refresh.topics.interval.seconds", "sync.group.offsets.interval.seconds")
_CLIENT = ("security.", "ssl.", "sasl.", "client.", "request.timeout.ms", "retry.backoff")
_WORKERS = (
    "tasks.max",
    "emit.",
    "checkpoints.",
    "heartbeats.",
    "offset-syncs.",
    "offset.syncs.",
    "offset.storage.",
    "config.storage.",
    "status.storage.",
    "exactly.once.",
    "dedicated.mode.",
    "listeners",
    "replication.factor",
    "refresh.groups.",
    "sync.topic.configs.interval",
    "sync.topic.acls.interval",
    "producer.",
    "consumer.",
    "admin.",
    "offset.lag.max",
)


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction, as a link in the target."""

    source: str
    target: str
    source_servers: str
    target_servers: str
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    client: tuple[str, ...]
    """The names of settings that belong into the link's own file."""
    notes: tuple[str, ...] = field(default=())


def flows(given: Mapping[str, str]) -> list[Flow]:
    """Those that are enabled. Failure when the file says too little."""
    clusters = _listed(given.get("clusters", ""))
    if not clusters:
        raise Failure("The file has no 'clusters'; it is no properties file of MirrorMaker 2.")
    for name in clusters:
        if not given.get(f"{name}.bootstrap.servers"):
            raise Failure(f"The file has no '{name}.bootstrap.servers'.")
    enabled = [
        (source, target)
        for source in clusters
        for target in clusters
        if source != target and _is_true(given.get(f"{source}->{target}.enabled", "false"))
    ]
    if not enabled:
        raise Failure(
            "No flow is enabled in the file: there is no 'SOURCE->TARGET.enabled = true' for its clusters."
        )
    return [_flow(given, source, target, (target, source) in enabled) for source, target in enabled]


def _flow(given: Mapping[str, str], source: str, target: str, both_ways: bool) -> Flow:
    def setting(name: str, default: str) -> str:
        return given.get(f"{source}->{target}.{name}", given.get(name, default)).strip()

    topics = _without(_listed(setting("topics", ".*")), _listed(setting("topics.exclude", TOPICS_EXCLUDED)))
    groups: tuple[str, ...] = ()
    notes = []
    if _is_true(setting("sync.group.offsets.enabled", "false")):
        groups = _without(
            _listed(setting("groups", ".*")), _listed(setting("groups.exclude", GROUPS_EXCLUDED))
        )
    else:
        notes.append("Offsets of groups are not copied: sync.group.offsets.enabled is not true.")
    if "IdentityReplicationPolicy" not in setting("replication.policy.class", "DefaultReplicationPolicy"):
        notes.append(
            f"Topics keep their names: 'orders' stays 'orders' and does not become '{source}.orders'."
        )
    if both_ways:
        notes.append(
            f"{target}->{source} is enabled, too. Without the prefix one topic can go one way only: what exists on both sides is left alone, "
            "and reported by 'headrace mirror status'."
        )
    if _is_true(setting("sync.topic.acls.enabled", "true")):
        notes.append("ACLs are not copied; sync.topic.acls.enabled has no effect.")
    if not _is_true(setting("sync.topic.configs.enabled", "true")):
        notes.append("Settings of topics are always copied; sync.topic.configs.enabled=false has no effect.")
    without_use = sorted({name for name in map(_bare, given) if name.startswith(_WORKERS)})
    if without_use:
        notes.append(f"Of no use here, since nothing runs beside the brokers: {', '.join(without_use)}.")
    client = [
        name.removeprefix(f"{source}.")
        for name in given
        if name.startswith(f"{source}.") and name.removeprefix(f"{source}.").startswith(_CLIENT)
    ]
    client += [name for name in _KEPT if name in map(_bare, given)]
    return Flow(
        source,
        target,
        given[f"{source}.bootstrap.servers"].replace(" ", ""),
        given[f"{target}.bootstrap.servers"].replace(" ", ""),
        topics,
        groups,
        tuple(sorted(client)),
        tuple(notes),
    )


def _bare(name: str) -> str:
    """A setting without the flow or the cluster it is for."""
    if "->" in name:
        return name.partition("->")[2].partition(".")[2]
    return name


def _without(wanted: list[str], excluded: list[str]) -> tuple[str, ...]:
    """Patterns that match what `wanted` do and `excluded` do not."""
    if not excluded:
        return tuple(wanted)
    gate = f"(?!(?:{'|'.join(excluded)})$)"
    for pattern in (*wanted, *excluded):
        try:
            re.compile(pattern)
        except re.error as error:
            raise Failure(f"'{pattern}' is no regular expression: {error}.") from None
    # A plain name needs no gate if it is not excluded itself.
    plain = re.compile(r"[a-zA-Z0-9_-]+")
    return tuple(
        pattern
        if plain.fullmatch(pattern) and re.match(gate, pattern) is not None
        else f"{gate}(?:{pattern})"
        for pattern in wanted
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"

"""Diverting by a cut: the group goes on at the end of the log, and `GROUP.backlog` gets what lies before it.

A group has to be stopped for it: the broker takes offsets for a group without members only, so nobody can join between the last
look and the move. Consumers that commit without ever joining are seen by what they commit: before the cut is committed that
starts over, after it the divert is undone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from headrace.backlog import copying, undoing
from headrace.backlog.divert import Divert, Places
from headrace.backlog.register import Writer
from headrace.backlog.site import Site
from headrace.backlog.states import State, Way
from headrace.client.administration.errors import NotPossible

log = logging.getLogger("headrace.backlog")

_MOST_PICTURES = 3
_COPY = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}
"""Nothing is deleted from a copy before it is read, and a record keeps its time."""


def divert(site: Site, writer: Writer, begun: Divert, settle: float, copied: Callable[[int], None]) -> Divert:
    """From whatever state it is in to DIVERTED."""
    pictures = 0
    while begun.state in (State.PREPARING, State.MOVING):
        if begun.state is State.PREPARING:
            pictures += 1
            if pictures > _MOST_PICTURES:
                undoing.abandon(site, writer, begun)
                raise _still_running(begun)
            try:
                begun = _prepared(site, writer, begun)
            except NotPossible:
                undoing.abandon(site, writer, begun)
                raise
        begun = _moved(site, writer, begun, settle)
    if begun.state is State.COPYING:
        copying.copy(site, begun, copied)
        begun = writer.put(begun.becomes(State.DIVERTED))
    return begun


def picture(site: Site, group: str, topic: str) -> tuple[Places, Places]:
    """Where the group is and where the partitions end; raises NotPossible when there is no backlog to divert."""
    committed = site.committed(group, topic)
    if not committed:
        raise NotPossible(
            f"Group {group} has committed nothing for topic {topic}, so it is not known what its backlog is."
        )
    cut = site.ends(topic)
    before = _starts(site, group, topic, cut)
    if before == cut:
        raise NotPossible(f"Group {group} has read all of topic {topic}: there is no backlog to divert.")
    return before, cut


def _starts(site: Site, group: str, topic: str, ends: Places) -> Places:
    """Where the group reads next: a committed offset may lie before the beginning of the log, or after its end."""
    starts = site.starts(group, topic)
    return {number: min(starts[number], end) for number, end in ends.items()}


def check_free(site: Site, planned: Divert) -> None:
    """Raises NotPossible when the names that this divert needs are in use."""
    name = planned.backlog_group
    if site.members(name) or site.committed(name, planned.backlog_topic):
        raise NotPossible(
            f"There is a group {name} already, which this divert needs for the backlog; stop it and remove it first: "
            f"headrace groups delete {name}"
        )
    if planned.way is Way.COPY and site.exists(planned.copy) and any(site.ends(planned.copy).values()):
        raise NotPossible(
            f"There is a topic {planned.copy} with records already, which this divert needs for the copy; "
            f"remove it first: headrace topics delete {planned.copy}"
        )


def _prepared(site: Site, writer: Writer, begun: Divert) -> Divert:
    """Nothing of the group has changed yet, so each time this looks anew."""
    before, cut = picture(site, begun.group, begun.topic)
    begun = writer.put(replace(begun, before=before, cut=cut))
    if begun.way is Way.COPY:
        longest = {"max.message.bytes": str(copying.longest_batch(site, begun))}
        site.create_like(begun.copy, begun.topic, {**_COPY, **longest})
        site.move(begun.backlog_group, begun.copy, dict.fromkeys(cut, 0), begun.note)
    else:
        site.move(begun.backlog_group, begun.topic, before, begun.note)
    return writer.put(begun.becomes(State.MOVING))


def _moved(site: Site, writer: Writer, begun: Divert, settle: float) -> Divert:
    """Commit the cut for the group, unless it is committed already; PREPARING again when the group went on by itself."""
    now = site.committed(begun.group, begun.topic)
    offsets = {number: each.offset for number, each in now.items()}
    ours = any(each.metadata == begun.note for each in now.values())
    if not ours and all(offsets.get(number, -1) >= cut for number, cut in begun.cut.items()):
        # Either this was killed right after the move and the group has gone on from the cut, or the group has read the whole
        # backlog by itself. To take the second for the first repeats records; the other way round would lose some.
        log.warning(
            "group %s ran between two tries of this divert; what it read before the cut meanwhile, if anything, comes again",
            begun.group,
        )
    elif not ours:
        if _starts(site, begun.group, begun.topic, begun.cut) != begun.before:
            return writer.put(begun.becomes(State.PREPARING))
        try:
            site.check_stopped(begun.group, "stop it and run this again.")
            site.move(begun.group, begun.topic, begun.cut, begun.note)
        except NotPossible:
            undoing.abandon(site, writer, begun)
            raise
        time.sleep(settle)
    crossed = crossed_partitions(site, begun)
    if crossed:
        undoing.undo(site, writer, begun)
        raise _still_running(begun)
    return writer.put(begun.becomes(State.COPYING if begun.way is Way.COPY else State.DIVERTED))


def crossed_partitions(site: Site, divert: Divert) -> Places:
    """Where somebody has committed for the group before the cut, by partition: a consumer that was not stopped."""
    now = site.committed(divert.group, divert.topic)
    return {
        number: now[number].offset
        for number, cut in divert.cut.items()
        if number in now and now[number].offset < cut
    }


def _still_running(begun: Divert) -> NotPossible:
    return NotPossible(
        f"Somebody still commits for group {begun.group} in topic {begun.topic} across the cut, without being one of its members; "
        "the divert is undone. Stop every consumer of the group and run this again."
    )

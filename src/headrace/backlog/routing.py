"""Diverting by a fresh topic: producers that follow routes write new records to `T.fresh`, while `T` drains as it is.

Both are read by the same group, each by its own instances. Coming back keeps the order of each key: the route ends when `T` is drained
and nobody reads it any more, and `T` is read again when `T.fresh` has been read to its end.
"""

from __future__ import annotations

import time
from dataclasses import replace

from headrace.backlog import cutting
from headrace.backlog.divert import Divert, Places
from headrace.backlog.errors import NotYet
from headrace.backlog.register import Writer
from headrace.backlog.site import Site
from headrace.backlog.states import State
from headrace.client.administration.errors import NotPossible
from headrace.client.routes import Route


def check_alone(site: Site, planned: Divert) -> None:
    """Raises NotPossible when other groups read the topic: a route takes the new records from them, too."""
    others = [name for name in site.groups_reading(planned.topic) if name != planned.group]
    if others:
        raise NotPossible(
            f"Topic {planned.topic} is read by {', '.join(others)} as well, and a route takes its new records away from every group; "
            f"have them read {planned.fresh} too, and say so with --other-groups-follow."
        )


def check_free(site: Site, planned: Divert) -> None:
    """Raises NotPossible when the fresh topic is there and cannot be used."""
    if not site.exists(planned.fresh):
        return
    if len(site.topic(planned.fresh).partitions) != len(site.topic(planned.topic).partitions):
        raise NotPossible(
            f"The topic {planned.fresh} has another number of partitions than {planned.topic}; "
            f"remove it first: headrace topics delete {planned.fresh}"
        )
    if site.unread(planned.group, planned.fresh, site.ends(planned.fresh)):
        raise NotPossible(
            f"The topic {planned.fresh} holds records that group {planned.group} has not read; read them or remove it first: "
            f"headrace topics delete {planned.fresh}"
        )


def divert(site: Site, writer: Writer, begun: Divert) -> Divert:
    if begun.state is State.PREPARING:
        before, cut = cutting.picture(site, begun.group, begun.topic)
        site.create_like(begun.fresh, begun.topic, {})
        # A consumer that begins at the end, where nothing is committed, would skip what is there, or comes before it starts.
        known = site.committed(begun.group, begun.topic)
        if unknown := {number: first for number, first in before.items() if number not in known}:
            site.move(begun.group, begun.topic, unknown, begun.note)
        starts = site.ends(begun.fresh)
        site.move(begun.group, begun.fresh, starts, begun.note)
        begun = replace(begun, before=before, cut=cut, moved_from=starts)
        begun = writer.put(begun.becomes(State.DIVERTED), Route(begun.topic, begun.fresh))
    return begun


def join(site: Site, writer: Writer, begun: Divert, quiet: float, *, any_order: bool) -> Divert:
    if begun.state is State.DIVERTED:
        ends = site.ends(begun.topic)
        _check_drained(site, begun, begun.topic, ends, "Keep its readers running and run this again.")
        if not any_order:
            _check_nobody_reads(site, begun)
        begun = writer.put(begun.becomes(State.JOINING, cut=ends), Route(begun.topic, None))
    ends = _ends_when_quiet(site, begun.fresh, quiet)
    _check_drained(
        site,
        begun,
        begun.fresh,
        ends,
        f"Producers write to {begun.topic} again; keep the readers of {begun.fresh} running, start none of {begun.topic} yet, "
        "and run this again.",
    )
    committed = {number: each.offset for number, each in site.committed(begun.group, begun.topic).items()}
    early = sum(max(0, committed.get(number, 0) - cut) for number, cut in begun.cut.items())
    proof = {
        "fresh": {str(number): end for number, end in sorted(ends.items())},
        "read_early": early,
    }
    return writer.put(begun.becomes(State.JOINED, proof=proof))


def undo(site: Site, writer: Writer, begun: Divert, quiet: float) -> Divert:
    """End the route; only while nothing was written to the fresh topic, since that would be skipped."""
    if begun.state is State.PREPARING:
        return writer.put(begun.becomes(State.UNDONE))
    if begun.state is not State.UNDOING:
        _check_unused(begun, site.ends(begun.fresh))
        begun = writer.put(begun.becomes(State.UNDOING), Route(begun.topic, None))
    ends = _ends_when_quiet(site, begun.fresh, quiet)
    if ends != begun.moved_from:
        writer.put(begun.becomes(State.JOINING))
        raise NotPossible(
            f"Records were written to {begun.fresh} while the divert was being undone; producers write to {begun.topic} again. "
            "Read them to the end, then end the divert: "
            f"headrace backlog join {begun.group} --topic {begun.topic}"
        )
    return writer.put(begun.becomes(State.UNDONE))


def _check_unused(begun: Divert, ends: Places) -> None:
    written = sum(ends[number] - begun.moved_from.get(number, 0) for number in ends)
    if written:
        raise NotPossible(
            f"{written:,} records were written to {begun.fresh} already, which undoing would leave unread; drain {begun.topic} and end "
            f"the divert in order: headrace backlog join {begun.group} --topic {begun.topic}"
        )


def _check_drained(site: Site, begun: Divert, topic: str, ends: Places, remedy: str) -> None:
    left = site.unread(begun.group, topic, ends)
    if left:
        numbers = ", ".join(map(str, sorted(left)))
        raise NotYet(
            f"Group {begun.group} has {sum(left.values()):,} records of {topic} left to read (partitions {numbers}). {remedy}"
        )


def _check_nobody_reads(site: Site, begun: Divert) -> None:
    readers = [
        each
        for each in site.members(begun.group)
        if any(topic == begun.topic for topic, _ in [*each.assignment, *(each.target or ())])
    ]
    if readers:
        names = ", ".join(sorted({f"{each.client_id} on {each.host}" for each in readers}))
        raise NotYet(
            f"Topic {begun.topic} is drained, and {names} still reads it: new records would be handled there before what is left in "
            f"{begun.fresh}. Stop the readers of {begun.topic} and run this again, or give up the order within a key with --any-order."
        )


def _ends_when_quiet(site: Site, topic: str, quiet: float) -> Places:
    """The ends of a topic that nobody has written to for ``quiet`` seconds: every producer has taken in that the route ended."""
    ends = site.ends(topic)
    while True:
        time.sleep(quiet)
        later = site.ends(topic)
        if later == ends:
            return ends
        ends = later

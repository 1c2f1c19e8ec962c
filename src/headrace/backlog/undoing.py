"""Undoing a divert by a cut: the group alone goes on, in each partition at the first record that nobody has handled.

That is where it was before when neither side has moved. Nothing is ever skipped; where the group is past the cut while
backlog is left, it has to go back, and what it handled after the cut comes again.
"""

from __future__ import annotations

from headrace.backlog import copying
from headrace.backlog.divert import Divert, Places
from headrace.backlog.register import Writer
from headrace.backlog.site import Site
from headrace.backlog.states import State, Way


def undo(site: Site, writer: Writer, begun: Divert) -> Divert:
    """To UNDONE, from any state that may be undone; both groups are stopped."""
    if begun.state is not State.UNDOING:
        now = where(site, begun)
        begun = writer.put(begun.becomes(State.UNDOING, moved_from=now, moved_to=resume(site, begun, now)))
    now = where(site, begun)
    # A partition that is neither where it was nor where it goes has been moved, and the group has gone on since.
    pending = {
        number: offset
        for number, offset in begun.moved_to.items()
        if now.get(number) == begun.moved_from.get(number) != offset
    }
    if pending:
        site.move(begun.group, begun.topic, pending, begun.note)
    return abandon(site, writer, begun)


def abandon(site: Site, writer: Writer, begun: Divert) -> Divert:
    """To UNDONE, leaving the group's offsets as they are."""
    remove_backlog(site, begun)
    return writer.put(begun.becomes(State.UNDONE))


def remove_backlog(site: Site, divert: Divert) -> None:
    """What was made for the backlog: its group, and the copy."""
    site.forget(divert.backlog_group, divert.backlog_topic)
    if divert.way is Way.COPY and site.exists(divert.copy):
        site.remove_topic(divert.copy)


def resume(site: Site, divert: Divert, now: Places) -> Places:
    """Where the group goes on. Where it stands before the cut nobody else may decide: it was never moved, or moved itself."""
    drained = backlog_places(site, divert)
    places = {}
    for number, cut in divert.cut.items():
        if number in now and now[number] >= cut:
            places[number] = drained[number] if drained[number] < cut else now[number]
    return places


def repeats(divert: Divert, now: Places, places: Places) -> int:
    """How many offsets the group would read a second time."""
    return sum(now[number] - divert.cut[number] for number, offset in places.items() if offset < now[number])


def backlog_places(site: Site, divert: Divert) -> Places:
    """The first record of the backlog, in the topic itself, that its group has not handled; the cut where there is none."""
    if divert.way is Way.COPY:
        return copying.places_in_original(site, divert)
    starts = site.starts(divert.backlog_group, divert.topic)
    left = site.unread(divert.backlog_group, divert.topic, divert.cut)
    return {number: starts[number] if number in left else cut for number, cut in divert.cut.items()}


def where(site: Site, divert: Divert) -> Places:
    """What the group has committed."""
    return {number: each.offset for number, each in site.committed(divert.group, divert.topic).items()}

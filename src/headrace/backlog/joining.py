"""Joining what a cut has divided: the backlog's group ends, when offsets prove that nothing was skipped or left over.

The group itself runs on; nothing of it changes.
"""

from __future__ import annotations

from headrace.backlog import undoing
from headrace.backlog.cutting import crossed_partitions
from headrace.backlog.divert import Divert, Places
from headrace.backlog.errors import NotYet
from headrace.backlog.register import Writer
from headrace.backlog.site import Site
from headrace.backlog.states import State, Way
from headrace.client.administration.errors import NotPossible


def join(site: Site, writer: Writer, begun: Divert, *, allow_repeats: bool, allow_loss: bool) -> Divert:
    """To JOINED, from DIVERTED or JOINING."""
    if begun.state is State.DIVERTED:
        _check_drained(site, begun)  # First: what is left is what people wait for.
        site.check_stopped(
            begun.backlog_group,
            "stop it before the join"
            + (", since it reads on past the cut." if begun.way is Way.OFFSETS else "."),
        )
        _check_drained(site, begun)  # Again: now nobody can move it any more.
        if not allow_repeats:
            _check_not_crossed(site, begun)
        lost = _lost(site, begun)
        if lost and not allow_loss:
            raise NotPossible(
                f"{lost:,} records were deleted by retention before they were read. They are gone; to join all the same: --allow-loss"
            )
        begun = writer.put(begun.becomes(State.JOINING, proof=_proof(site, begun, lost)))
    undoing.remove_backlog(site, begun)
    return writer.put(begun.becomes(State.JOINED))


def ends_of_backlog(site: Site, divert: Divert) -> Places:
    """Where the backlog ends, in the topic it is read from."""
    return site.ends(divert.copy) if divert.way is Way.COPY else divert.cut


def past_the_cut(site: Site, divert: Divert) -> int:
    """Offsets after the cut that the backlog's group has committed, too: both groups have handled what they hold."""
    if divert.way is not Way.OFFSETS:
        return 0
    reached = site.committed(divert.backlog_group, divert.topic)
    return sum(max(0, each.offset - divert.cut.get(number, each.offset)) for number, each in reached.items())


def _check_drained(site: Site, divert: Divert) -> None:
    left = site.unread(divert.backlog_group, divert.backlog_topic, ends_of_backlog(site, divert))
    if left:
        places = ", ".join(f"{number}: {count:,}" for number, count in sorted(left.items()))
        raise NotYet(
            f"Group {divert.backlog_group} has {sum(left.values()):,} records of {divert.backlog_topic} left to read (by partition {places}); "
            "let it finish and run this again."
        )


def _check_not_crossed(site: Site, divert: Divert) -> None:
    crossed = crossed_partitions(site, divert)
    if crossed:
        places = ", ".join(
            f"{number} at {offset}, cut {divert.cut[number]}" for number, offset in sorted(crossed.items())
        )
        raise NotPossible(
            f"Group {divert.group} stands before the cut in topic {divert.topic} (partition {places}): somebody has moved it back, and it will "
            "handle again what the backlog's group has handled. Move it to the cut with 'headrace groups reset-offsets', or take the "
            "repeats: --allow-repeats"
        )


def _lost(site: Site, divert: Divert) -> int:
    """Offsets that retention deleted before either group read them."""
    firsts = site.firsts(divert.topic)
    count = 0
    sides: list[tuple[str, Places | None]] = [(divert.group, None)]
    if divert.way is Way.OFFSETS:
        sides.append((divert.backlog_group, divert.cut))
    for group, bounds in sides:
        for number, each in site.committed(group, divert.topic).items():
            until = (
                firsts.get(number, 0) if bounds is None else min(firsts.get(number, 0), bounds.get(number, 0))
            )
            count += max(0, until - each.offset)
    return count


def _proof(site: Site, divert: Divert, lost: int) -> dict[str, object]:
    def places(group: str, topic: str) -> dict[str, int]:
        return {str(number): each.offset for number, each in sorted(site.committed(group, topic).items())}

    return {
        "group": places(divert.group, divert.topic),
        "backlog": places(divert.backlog_group, divert.backlog_topic),
        "backlog_ends": {str(number): end for number, end in sorted(ends_of_backlog(site, divert).items())},
        "handled_twice": past_the_cut(site, divert),
        "lost": lost,
    }

"""`Backlogs`: divert, look at, join and undo, for programs and the commands alike.

Every operation may be killed anywhere and called again; it finds in the control topic what is done and goes on. An outage of the cluster
is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from headrace.backlog import cutting, joining, routing, undoing
from headrace.backlog.divert import Divert
from headrace.backlog.errors import NotYet
from headrace.backlog.register import Register, Writer
from headrace.backlog.site import Site
from headrace.backlog.states import State, Way
from headrace.backlog.status import Meter
from headrace.client.administration.errors import NotPossible
from headrace.client.config import Config, merged
from headrace.client.errors import BrokerError

T = TypeVar("T")

_OUTAGE = 60.0
_PAUSE = 0.5
_AGAIN_LATER = 1.0
_STOP = "its offsets are theirs to commit. Stop them and run this again, or give them time to stop with --wait 2m."
QUIET = 3.0
"""Seconds without a new record that tell that every producer has left a fresh topic."""
SETTLE = 1.0
"""Seconds in which somebody who still commits for a stopped group may show."""


class Backlogs:
    """The diverts of one cluster.

    >>> with Backlogs("localhost:9092") as backlogs:
    ...     backlogs.divert("billing", "orders")
    """

    def __init__(self, config: Config = None, /, **settings: object) -> None:
        self.site = Site.of(merged(config, settings))
        self._register = Register(self.site.connection, self.site.admin)

    def diverts(self, group: str | None = None, topic: str | None = None) -> list[Divert]:
        """Those that are going on or over, of a group and a topic, or of any."""
        return self._through_outages(
            lambda: [
                each
                for each in self._register.all()
                if (group is None or each.group == group) and (topic is None or each.topic == topic)
            ]
        )

    def divert(
        self,
        group: str,
        topic: str,
        way: Way = Way.OFFSETS,
        *,
        wait: float = 0.0,
        settle: float = SETTLE,
        other_groups_follow: bool = False,
        copied: Callable[[int], None] = lambda count: None,
    ) -> Divert:
        """New records are served at once from here on, while the backlog drains beside them.

        The group has to be stopped, or to stop within ``wait`` seconds. Raises NotPossible when it does not, when it has no backlog, or
        when it moves while this happens; then nothing has changed. ``copied`` is told how many records more have been copied.
        """

        def step(writer: Writer) -> Divert:
            begun = self._begun(group, topic)
            if begun is None:
                begun = Divert(group, topic, way, State.PREPARING, {}, {})
                self._check(begun, other_groups_follow=other_groups_follow)
                if not wait:
                    self.site.check_stopped(group, _STOP)
                writer.put(begun)
            elif begun.way is not way:
                raise NotPossible(
                    f"Topic {topic} is diverted for group {group} by {begun.way} already (state {begun.state}); join or undo that first."
                )
            elif begun.state in (State.JOINING, State.UNDOING):
                raise _under_way(begun)
            if begun.state is State.PREPARING:
                # From here on runners that agree to diverts are asked to step aside.
                self._await_stopped(writer, begun, wait)
            if way is not Way.FRESH:
                return cutting.divert(self.site, writer, begun, settle, copied)
            try:
                return routing.divert(self.site, writer, begun)
            except NotPossible:
                writer.put(begun.becomes(State.UNDONE))
                raise

        return self._change(group, topic, step)

    def join(
        self,
        group: str,
        topic: str,
        *,
        wait: float = 0.0,
        quiet: float = QUIET,
        allow_repeats: bool = False,
        allow_loss: bool = False,
        any_order: bool = False,
    ) -> Divert:
        """One group reads all again. Raises NotPossible while backlog is left, after up to ``wait`` seconds."""

        def step(writer: Writer) -> Divert:
            begun = self._known(group, topic)
            if begun.state is State.JOINED:
                return begun
            if begun.state not in (State.DIVERTED, State.JOINING):
                raise _under_way(begun)
            if begun.way is Way.FRESH:
                return routing.join(self.site, writer, begun, quiet, any_order=any_order)
            return joining.join(self.site, writer, begun, allow_repeats=allow_repeats, allow_loss=allow_loss)

        deadline = time.monotonic() + wait
        while True:
            try:
                return self._change(group, topic, step)
            except NotYet:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_AGAIN_LATER)

    def undo(self, group: str, topic: str, *, allow_repeats: bool = False, quiet: float = QUIET) -> Divert:
        """The group alone goes on at the first records that nobody has handled. Raises NotPossible when that repeats some."""

        def step(writer: Writer) -> Divert:
            begun = self._known(group, topic)
            if begun.state is State.UNDONE:
                return begun
            if begun.state in (State.JOINING, State.JOINED):
                raise _under_way(begun)
            if begun.way is Way.FRESH:
                return routing.undo(self.site, writer, begun, quiet)
            if begun.state is State.PREPARING:
                return undoing.abandon(self.site, writer, begun)
            if begun.state is not State.UNDOING:
                for name in (group, begun.backlog_group):
                    self.site.check_stopped(name, "stop it before the divert is undone.")
                if not allow_repeats:
                    self._check_repeats(begun)
            return undoing.undo(self.site, writer, begun)

        return self._change(group, topic, step)

    def meter(self, window: float) -> Meter:
        """For looks at diverts; the caller closes it."""
        return Meter(self.site, window)

    def close(self) -> None:
        self.site.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _change(self, group: str, topic: str, step: Callable[[Writer], T]) -> T:
        def once() -> T:
            with self._register.writing(group, topic) as writer:
                return step(writer)

        return self._through_outages(once)

    def _through_outages(self, operation: Callable[[], T]) -> T:
        deadline = time.monotonic() + _OUTAGE
        while True:
            try:
                return operation()
            except BrokerError as error:
                if not error.retriable or time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE)

    def _begun(self, group: str, topic: str) -> Divert | None:
        """The divert that is going on."""
        found = self._register.find(group, topic)
        return None if found is None or found.state.over else found

    def _known(self, group: str, topic: str) -> Divert:
        found = self._register.find(group, topic)
        if found is None:
            raise NotPossible(
                f"Topic {topic} is not diverted for group {group}; 'headrace backlog status' shows what is."
            )
        return found

    def _await_stopped(self, writer: Writer, begun: Divert, wait: float) -> None:
        try:
            self.site.await_stopped(begun.group, _STOP, wait)
        except NotYet:
            if begun.way is Way.FRESH:
                writer.put(begun.becomes(State.UNDONE))
            else:
                undoing.abandon(self.site, writer, begun)
            raise

    def _check(self, planned: Divert, *, other_groups_follow: bool) -> None:
        """Raises NotPossible for a divert that cannot begin; nothing is written before that."""
        self.site.topic(planned.topic)
        cutting.picture(self.site, planned.group, planned.topic)
        if planned.way is Way.FRESH:
            routing.check_free(self.site, planned)
            if not other_groups_follow:
                routing.check_alone(self.site, planned)
        else:
            cutting.check_free(self.site, planned)

    def _check_repeats(self, begun: Divert) -> None:
        now = undoing.where(self.site, begun)
        places = undoing.resume(self.site, begun, now)
        again = undoing.repeats(begun, now, places)
        if again:
            back = ", ".join(str(number) for number, offset in sorted(places.items()) if offset < now[number])
            raise NotPossible(
                f"Group {begun.group} has handled {again:,} records after the cut in partitions {back}, where backlog is left: to go back "
                "there repeats them. Drain the backlog and join instead, or take the repeats: --allow-repeats"
            )


def _under_way(begun: Divert) -> NotPossible:
    words = {
        State.PREPARING: "is not complete; go on with 'headrace backlog divert' or give it up with 'undo'",
        State.MOVING: "is not complete; go on with 'headrace backlog divert' or give it up with 'undo'",
        State.COPYING: "is not copied completely; go on with 'headrace backlog divert' or give it up with 'undo'",
        State.JOINING: "is being joined; go on with 'headrace backlog join'",
        State.UNDOING: "is being undone; go on with 'headrace backlog undo'",
        State.JOINED: "has been joined",
        State.UNDONE: "has been undone",
    }
    return NotPossible(f"The divert of topic {begun.topic} for group {begun.group} {words[begun.state]}.")

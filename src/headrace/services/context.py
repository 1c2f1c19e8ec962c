"""What surrounds a call: attachments in both directions and the two addresses.

A provider's method reads `current()`; a consumer sends attachments with `attach(…)` and reads the reply's with
`reply_attachments()`. Each call has its own context, in threads and in tasks alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from headrace.services.invocation import Attachments, Invocation

# Set by the protocol itself, so not shown to the implementation as the caller's own.
RESERVED = frozenset(
    (
        "path",
        "interface",
        "group",
        "version",
        "dubbo",
        "token",
        "timeout",
        "async",
        "dubbo.tag",
        "generic",
        "generic.strict",
    )
)


class CallContext:
    """One call as its implementation sees it."""

    __slots__ = ("_invocation", "reply", "service")

    def __init__(self, service: str, invocation: Invocation) -> None:
        self.service = service
        self.reply: Attachments = {}  # goes back to the consumer with the result
        self._invocation = invocation

    @property
    def method_name(self) -> str:
        return self._invocation.method_name

    @property
    def attachments(self) -> Attachments:
        """What the consumer attached, without the protocol's own entries."""
        return {key: value for key, value in self._invocation.attachments.items() if key not in RESERVED}

    @property
    def remote_address(self) -> str:
        return self._invocation.remote_address

    @property
    def local_address(self) -> str:
        return self._invocation.local_address


CALL: ContextVar[CallContext | None] = ContextVar("headrace.services.call", default=None)
_outgoing: ContextVar[Mapping[str, object]] = ContextVar("headrace.services.outgoing", default={})  # noqa: B039
_reply: ContextVar[Mapping[str, object]] = ContextVar("headrace.services.reply", default={})  # noqa: B039


def current() -> CallContext:
    """The call being served; outside of one, an empty context."""
    return CALL.get() or CallContext("", Invocation("", "", ()))


@contextmanager
def attach(attachments: Mapping[str, object]) -> Iterator[None]:
    """Send these attachments with every call made inside the block."""
    token = _outgoing.set({**_outgoing.get(), **attachments})
    try:
        yield
    finally:
        _outgoing.reset(token)


def outgoing() -> Mapping[str, object]:
    return _outgoing.get()


def reply_attachments() -> Mapping[str, object]:
    """What came back with the last call made in this thread or task."""
    return _reply.get()


def note_reply(attachments: Mapping[str, object]) -> None:
    _reply.set(attachments)

"""Patterns that members subscribe to, matched by the broker.

RE2 matches in time linear in the input whatever the pattern, so no subscription can hold up the event loop. It is
imported with the first pattern: most brokers never see one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from headrace.server.groups.topics import Topics
from headrace.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import re2


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> re2._Regexp:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def validate(pattern: str) -> None:
    import re2

    try:
        _compile(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else "it does not parse"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid RE2 regular expression: {text}.",
        ) from None


def resolve(pattern: str, topics: Topics, may_describe: Callable[[str], bool]) -> frozenset[str]:
    """The topics whose whole name matches and that the member may see."""
    matches = _compile(pattern).fullmatch
    return frozenset(name for name in topics.names() if matches(name) and may_describe(name))

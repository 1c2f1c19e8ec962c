"""What can go wrong with a connector, one class per thing a caller would do differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.streaming.errors import StreamingError


class ConnectorError(StreamingError):
    """The base of all errors of headrace.connectors; the message is one sentence with cause and remedy."""


class ConfigError(ConnectorError, ValueError):
    """A connector's file is wrong; ``problems`` has one sentence for each mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


class Rejected(ConnectorError):
    """Raised by a sink's ``write``: the target will never take these records. ``reasons`` has them by offset."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


class Unavailable(ConnectorError):
    """Raised by a sink's ``write``: the target does not answer now. The same chunk comes again after a while."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def one_line(error: object) -> str:
    """What another library says, fit to be part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")

"""What can go wrong with a connector, one class per thing a caller would do differently."""

from __future__ import annotations

from collections.abc import Sequence


class ConnectorError(Exception):
    """The base of all errors of headrace.connectors; the message is one sentence with cause and remedy."""


class ConfigError(ConnectorError, ValueError):
    """A connector's file is wrong; ``problems`` has one sentence for each mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


class RejectedRecord(ConnectorError):
    """Raised by a sink's ``write``: the target will never take this record, whatever is tried."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset

    def __reduce__(self) -> tuple[type[RejectedRecord], tuple[str, int]]:
        return type(self), (str(self), self.offset)

"""An error code in a reply, as the failure it is for the user."""

from __future__ import annotations

from headrace.cli.failure import Failure
from headrace.wire.errors import ErrorCode


class RequestRefused(Failure):
    def __init__(self, code: int, message: str | None = None) -> None:
        try:
            self.error = ErrorCode(code)
        except ValueError:
            self.error = ErrorCode.UNKNOWN_SERVER_ERROR
            message = message or f"The broker answered with the unknown error {code}"
        text = message or self.error.name.replace("_", " ").capitalize()
        super().__init__(text if text.endswith(".") else f"{text}.")


def check(code: int, message: str | None = None) -> None:
    """Raises RequestRefused for an error code."""
    if code != ErrorCode.NONE:
        raise RequestRefused(code, message)

"""Whatever ends a run of connectors, in the one sentence that people see."""

from __future__ import annotations

from headrace.client.errors import ClientError
from headrace.streaming.errors import StreamingError
from headrace.streaming.session import LOG
from headrace.streaming.spark_errors import reason, talking_to_spark


def sentence(error: BaseException) -> str | None:
    """What went wrong, without its full stop; None for what is no matter of the user's."""
    if isinstance(error, StreamingError | ClientError):
        text = str(error)
    elif isinstance(error, ImportError):
        text = f"Connectors on Spark need the extra: pip install 'headrace[spark]' ({error})"
    elif isinstance(error, ConnectionError) or type(error).__name__ in ("Py4JError", "Py4JNetworkError"):
        text = f"Spark ended before the connectors did; what it said is in {LOG}"
    elif isinstance(error, OSError):
        text = f"{error.filename or 'The state of the connectors'} cannot be used: {error.strerror}"
    elif isinstance(error, talking_to_spark()):
        text = reason(str(error))
    else:
        return None
    return text.rstrip(".")

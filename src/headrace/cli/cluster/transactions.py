"""What to say about a transaction that is not there."""

from __future__ import annotations

from headrace.cli.failure import Failure


def no_transaction_at(topic: str, partition: int, start_offset: int) -> Failure:
    return Failure(
        f"No open transaction of {topic}-{partition} starts at offset {start_offset}; "
        f"'headrace transactions find-hanging --topic {topic}' shows those that hang."
    )

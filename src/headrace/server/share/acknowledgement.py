"""An acknowledgement: a range of offsets, with one type for all of them or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.server.share.states import AcknowledgeType
from headrace.wire.errors import ErrorCode, KafkaError


class Acknowledgement(NamedTuple):
    first: int
    last: int
    types: Sequence[int]
    """One for all of them, or one for each."""

    def by_type(self) -> list[tuple[int, int, AcknowledgeType]]:
        """Stretches with the same type."""
        first, last, types = self
        if last < first or len(types) not in (1, last - first + 1):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"An acknowledgement of offsets {first} to {last} has {len(types)} types; it needs one, or one for each.",
            )
        try:
            kinds = [AcknowledgeType(each) for each in types]
        except ValueError:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{list(types)} holds an unknown acknowledge type."
            ) from None
        if len(kinds) == 1:
            return [(first, last, kinds[0])]
        stretches: list[tuple[int, int, AcknowledgeType]] = []
        for offset, kind in enumerate(kinds, first):
            if stretches and stretches[-1][2] is kind:
                stretches[-1] = (stretches[-1][0], offset, kind)
            else:
                stretches.append((offset, offset, kind))
        return stretches

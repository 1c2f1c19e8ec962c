"""State batches laid over older ones: what was written last counts, and nothing below the start offset is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.server.share.states import StateBatch


def combine(old: Sequence[StateBatch], new: Iterable[StateBatch], start: int) -> tuple[StateBatch, ...]:
    """Sorted, without overlaps, neighbours in the same state as one."""
    batches = list(old)
    for batch in new:
        kept: list[StateBatch] = []
        for each in batches:
            if each.last < batch.first or each.first > batch.last:
                kept.append(each)
                continue
            if each.first < batch.first:
                kept.append(each._replace(last=batch.first - 1))
            if each.last > batch.last:
                kept.append(each._replace(first=batch.last + 1))
        kept.append(batch)
        batches = kept
    combined: list[StateBatch] = []
    for each in sorted(batches):
        if each.last < start:
            continue
        each = each._replace(first=max(each.first, start))
        before = combined[-1] if combined else None
        if before is not None and before.last + 1 == each.first and before[2:] == each[2:]:
            combined[-1] = before._replace(last=each.last)
        else:
            combined.append(each)
    return tuple(combined)

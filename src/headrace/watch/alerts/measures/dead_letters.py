"""Rules about dead letters that arrive. What arrived within a time is asked of the brokers, so nothing is kept over restarts."""

from __future__ import annotations

from headrace.client.administration import offsets, topics
from headrace.client.administration.names import Partition
from headrace.client.durations import show_seconds
from headrace.watch.alerts.conditions import DeadLetters
from headrace.watch.alerts.sight import Sight
from headrace.watch.alerts.states import Finding, Seen


def findings(condition: DeadLetters, sight: Sight) -> list[Finding]:
    """One for each topic."""
    names = [name for name in sight.topics if condition.topics.matches(name)]
    described, refused = topics.find(sight.session, names)
    partitions: list[Partition] = [
        (topic.name, each.id) for topic in described.values() for each in topic.partitions
    ]
    since = int((sight.now - condition.within) * 1000)
    starts, unknown_starts = offsets.list_offsets(sight.session, partitions, offsets.at(since))
    ends, unknown_ends = offsets.list_offsets(sight.session, partitions, offsets.LATEST)
    unknown = {name for name, _ in [*unknown_starts, *unknown_ends]} | refused.keys()
    found = []
    for name in names:
        count = sum(
            max(0, ends[each] - start)
            for each, start in starts.items()
            if each[0] == name and start >= 0 and each in ends
        )
        seen = Seen.ACTIVE if count > condition.above else Seen.MISSING if name in unknown else Seen.CLEAR
        letters = "1 dead letter" if count == 1 else f"{count:,} dead letters"
        summary = f"{letters} arrived in {name} within {show_seconds(condition.within)}"
        found.append(Finding((("topic", name),), seen, summary, float(count)))
    return found

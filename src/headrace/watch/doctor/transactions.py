"""Transactions that no coordinator will end: readers of committed records wait behind them for ever."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.client.administration import transactions
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, counted, error, listed
from headrace.watch.doctor.scene import Scene

_GRACE = 300.0
"""Seconds beyond the longest timeout, as in Kafka's tool."""


def _hanging(scene: Scene) -> Iterator[Finding]:
    longest = max(
        (int(own.get("transaction.max.timeout.ms", 900_000)) for own in scene.broker_settings.values()),
        default=900_000,
    )
    after = scene.bounds.open_transaction
    seconds = longest / 1000 + _GRACE if after is None else after
    found = transactions.find_hanging(scene.session, longer_than_ms=round(seconds * 1000))
    if found:
        first = found[0]
        places = [f"{each.topic}-{each.partition}" for each in found]
        yield error(
            f"{counted(len(found), 'transaction')} hanging in {listed(places)}: readers with isolation.level=read_committed get nothing "
            "behind them, and compaction stops.",
            f"'headrace transactions abort {first.topic} -p {first.partition} --start-offset {first.start_offset}' ends one; "
            "'headrace transactions find-hanging' lists them all.",
            places,
        )


HANGING = Check(
    "hanging-transactions",
    Severity.ERROR,
    "open transactions that their coordinator knows nothing about",
    Needs.CLUSTER,
    _hanging,
)

"""The topics that coordinators keep their state in."""

from __future__ import annotations

from headrace.cluster.internal_topics import CONSUMER_OFFSETS as OFFSETS_TOPIC
from headrace.cluster.internal_topics import TRANSACTION_STATE as TRANSACTIONS_TOPIC

__all__ = ["OFFSETS_TOPIC", "TRANSACTIONS_TOPIC"]

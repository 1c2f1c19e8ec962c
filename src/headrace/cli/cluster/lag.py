"""A meter of lag on a command's connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.client.administration.lag import ONE_RECORD
from headrace.client.lag import DEFAULT_WINDOW, LagMeter

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster


@contextmanager
def metering(cluster: Cluster, window: float = DEFAULT_WINDOW) -> Iterator[LagMeter]:
    consumer = cluster.consumer({"group.id": "headrace-lag", "enable.auto.commit": False, **ONE_RECORD})
    try:
        yield LagMeter(cluster.session, consumer, window)
    finally:
        consumer.close()

"""The log of a topic's only partition, as one broker has it."""

from __future__ import annotations

from headrace.server.node import Node
from headrace.testing.broker import BrokerThread
from headrace.testing.process import BrokerProcess


def log_bytes(broker: BrokerThread | BrokerProcess, topic: str) -> bytes:
    """The bytes of all segments."""
    return b"".join(path.read_bytes() for path in sorted((broker.data / f"{topic}-0").glob("*.log")))


def log_end_offset(broker: BrokerThread, topic: str) -> int:
    """0 as long as there is no log."""

    async def look(node: Node) -> int:
        log = node.logs.get(topic, 0)
        return log.log_end_offset if log is not None else 0

    return broker.run(look)

"""What a broker takes from the machine it runs on, besides time and files: threads, listening sockets, the store of its
cluster, the process that compacts. The simulator (tests/simulation) hands in a machine of its own.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from headrace.server.cluster.join import OpenStore, open_store
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.listeners import Listener
from headrace.server.log.cleaner import Worker
from headrace.server.net.binding import bind


@dataclass(frozen=True, slots=True)
class Machine:
    """What a broker takes from the machine it runs on."""

    threads: Callable[[int, str], Executor] = ThreadPoolExecutor
    bind: Callable[[BrokerConfig], list[tuple[Listener, socket.socket]]] = bind
    open_store: OpenStore = open_store
    compact: Worker | None = None
    """What does a cleaning task; None for a process of its own."""

"""ZooKeeper, where a broker's settings name it: whether it can be reached from here."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, error, listed, warning
from headrace.watch.doctor.scene import Scene

_PATIENCE = 3.0
_PORT = 2181


def _store(scene: Scene) -> Iterator[Finding]:
    named: dict[str, list[str]] = {}
    for place, settings in scene.all_broker_settings.items():
        servers = settings.get("zookeeper.connect", "").partition("/")[0]
        if servers:
            named.setdefault(servers, []).append(place)
    for servers, places in named.items():
        each = [server.strip() for server in servers.split(",") if server.strip()]
        away = [server for server in each if not _answers(server)]
        who = f"ZooKeeper of {listed(places)}"
        if len(away) == len(each):
            yield error(
                f"No server of the {who} accepts connections from here: {listed(away)}.",
                "Start ZooKeeper; if only this machine cannot reach it, look from the brokers' machines.",
                away,
            )
        elif away:
            yield warning(
                f"{len(away)} of {len(each)} servers of the {who} accept no connections from here: {listed(away)}.",
                "Start them: with more than half of the servers down, no topic, setting or leader can change.",
                away,
            )


def _answers(server: str) -> bool:
    host, colon, port = server.rpartition(":")
    if not colon or not port.isdigit():
        host, port = server, str(_PORT)
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except OSError:
        return False
    return True


STORE = Check(
    "zookeeper",
    Severity.ERROR,
    "whether ZooKeeper, where settings name it, accepts connections",
    Needs.SETTINGS,
    _store,
)

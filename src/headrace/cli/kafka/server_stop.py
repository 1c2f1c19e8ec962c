"""kafka-server-stop.sh: stop the broker of this machine that listens at an address.

Kafka's script stops every broker that it finds by the name of its process. This one stops the broker at --bootstrap-server, or the
command that supervises it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

_PROC = Path("/proc")
_LISTENING = "0A"


def run(arguments: list[str]) -> int:
    parser = KafkaParser("server-stop", "Stop the broker of this machine that listens at --bootstrap-server.")
    parser.bootstrap()
    parser.obsolete(
        {
            "--process-role": "is ignored: there are only brokers here.",
            "--node-id": "is ignored: name the broker by its address, with --bootstrap-server.",
        },
        takes_value=True,
    )
    options = parser.parse(arguments)
    try:
        address = options.bootstrap_server.split(",")[0]
        pid = _stoppable(_listener(address), address)
        os.kill(pid, signal.SIGTERM)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    print(f"Asked process {pid} to stop.")
    return Exit.OK


def _listener(address: str) -> int:
    """The process that listens at an address of this machine."""
    host, _, port = address.rpartition(":")
    if not _PROC.is_dir():
        raise Failure("This script needs Linux; stop the broker with Ctrl-C, or send its process SIGTERM.")
    if not _is_here(host.strip("[]")):
        raise Failure(f"{address} is not on this machine; stop the broker where it runs.")
    inodes = {
        fields[9]
        for table in ("tcp", "tcp6")
        for fields in map(str.split, (_PROC / "net" / table).read_text().splitlines()[1:])
        if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == int(port)
    }
    for process in _PROC.iterdir():
        if process.name.isdigit() and inodes & _sockets(process):
            return int(process.name)
    raise Failure(f"No kafka server to stop: nothing of yours listens at {address}.")


def _is_here(host: str) -> bool:
    """Whether a socket can be bound to it."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(place)
    except OSError:
        return False
    return True


def _sockets(process: Path) -> set[str]:
    """The inodes of a process's sockets; none of a process of somebody else's."""
    found = set()
    try:
        for descriptor in (process / "fd").iterdir():
            target = os.readlink(descriptor)
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass
    return found


def _stoppable(pid: int, address: str) -> int:
    """The broker itself, or the `headrace up` that would start it again."""
    if not _is_headrace(pid):
        raise Failure(f"What listens at {address} (process {pid}) is not Headrace.")
    parent = int(_stat(pid).rpartition(")")[2].split()[1])
    return parent if _is_headrace(parent) else pid


def _is_headrace(pid: int) -> bool:
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return False
    return any("headrace" in word for word in words[:4])


def _stat(pid: int) -> str:
    return (_PROC / str(pid) / "stat").read_text()

"""The few commands a person can type at a dubbo:// port, as on Dubbo's own."""

from __future__ import annotations

from headrace.services.protocols.dubbo.port import Port

MAX_LINE = 1024
_PROMPT = "\r\ndubbo>"
_HELP = (
    "help                             - this list\r\n"
    "ls [service]                     - services, or one service's methods\r\n"
    "ps                               - the port and its consumers\r\n"
    "status                           - whether the provider is healthy\r\n"
    "exit                             - close the connection"
)


def answer(line: str, port: Port) -> str | None:
    """What to print for a line; None closes the connection."""
    command, _, rest = line.partition(" ")
    rest = rest.strip()
    if command == "exit":
        return None
    if not command:
        return _PROMPT
    if command == "help":
        return _HELP + _PROMPT
    if command == "status":
        return "OK" + _PROMPT
    if command == "ps":
        clients = "\r\n".join(f"{c.remote_address} -> {c.local_address}" for c in port.connections)
        return f"{port.number}\r\n{clients}" + _PROMPT
    if command == "ls":
        return _list(rest, port) + _PROMPT
    return f"Unsupported command: {command}" + _PROMPT


def _list(name: str, port: Port) -> str:
    invokers = port.invokers.values()
    if not name:
        return "\r\n".join(sorted({invoker.url.service_key for invoker in invokers}))
    for invoker in invokers:
        if name in (
            invoker.interface.name,
            invoker.interface.name.rpartition(".")[2],
            invoker.url.service_key,
        ):
            return "\r\n".join(sorted(invoker.interface.methods))
    return f"No such service {name}"

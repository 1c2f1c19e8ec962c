"""Binding the addresses a broker listens on, and saying in one sentence why one of them cannot be bound."""

from __future__ import annotations

import errno
import socket

from headrace.link.addresses import join_address
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.listeners import Listener


class BindError(Exception):
    """The message includes the remedy."""


def bind(config: BrokerConfig) -> list[tuple[Listener, socket.socket]]:
    """A bound socket for every listener, none listening yet; all or none."""
    bound: list[tuple[Listener, socket.socket]] = []
    for listener in config.listeners:
        try:
            one = _bound(listener.host, listener.port, config)
        except OSError as error:
            for _, other in bound:
                other.close()
            why = _why_not(listener.host, listener.port, "--listen", error)
            raise BindError(f"Cannot listen on {listener}: {why}") from None
        bound.append((listener, one))
    return bound


def bind_metrics(config: BrokerConfig, host: str, port: int) -> socket.socket:
    """The same for the listener of metrics."""
    try:
        return _bound(host, port, config)
    except OSError as error:
        why = _why_not(host, port, "--metrics", error)
        raise BindError(f"Cannot serve metrics on {join_address(host, port)}: {why}") from None


def _bound(host: str, port: int, config: BrokerConfig) -> socket.socket:
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    one = socket.socket(family, kind, protocol)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _size_buffers(one, config)
        one.bind(address)
    except OSError:
        one.close()
        raise
    return one


def _size_buffers(listening: socket.socket, config: BrokerConfig) -> None:
    """The connections it accepts inherit the sizes, unless those are left to the system."""
    if (size := config.integer("socket.send.buffer.bytes")) >= 0:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
    if (size := config.integer("socket.receive.buffer.bytes")) >= 0:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def _why_not(host: str, port: int, option: str, error: OSError) -> str:
    """Why an address cannot be listened on, and what to do about it."""
    if isinstance(error, socket.gaierror):
        return f"the host name {host} cannot be resolved; give an address of this machine."
    if error.errno == errno.EADDRINUSE:
        return (
            f"something else listens on port {port}; stop it, or choose another port "
            f"with {option} HOST:PORT (0 takes a free one)."
        )
    if error.errno == errno.EADDRNOTAVAIL and option != "--listen":
        return f"{host} is not an address of this machine; give one that is."
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"{host} is not an address of this machine; listen on one that is, or on 0.0.0.0 for all of them, "
            f"and tell clients {host} with --advertise HOST:PORT if that is how they get here."
        )
    if error.errno == errno.EACCES:
        return f"port {port} needs privileges; choose one above 1023."
    return f"{error.strerror or error}; choose another address with {option} HOST:PORT."

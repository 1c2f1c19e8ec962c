"""Connection trouble as librdkafka reports it, in one sentence with the address, the cause and the remedy.
Only trouble that waiting cannot cure ends a command.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from confluent_kafka import KafkaError

from headrace.cli.failure import Exit, Failure
from headrace.link.addresses import split_address

# "[protocol://]host:port/node: reason (after 0ms in state CONNECT)"
_REPORT = re.compile(
    r"^(?:\w+://)?(?P<address>\S+?)/(?P<node>\w+): (?P<reason>.*?)(?: \(after .*\))?$", re.DOTALL
)
_CONNECT = re.compile(r"^Connect to \S+ failed: ")


@dataclass(frozen=True, slots=True)
class Names:
    """Where the user has said what may be wrong, for the remedies."""

    servers: str = "--bootstrap-server"
    client: str = "--command-config"


class Trouble:
    def __init__(
        self,
        bootstrap: str,
        names: Names = Names(),  # noqa: B008  it is frozen
        protocol: str = "PLAINTEXT",
    ) -> None:
        """`protocol` is the client's security.protocol."""
        self._bootstrap = bootstrap
        self._names = names
        self._protocol = protocol
        self._address = bootstrap
        self._node = "bootstrap"
        self._reason = ""
        self._code = KafkaError.NO_ERROR
        self._failures = 0
        self._all_down = False
        self._final = False

    def report(self, error: KafkaError) -> None:
        """librdkafka's error callback."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._all_down = True
            return
        self._failures += 1
        match = _REPORT.match(error.str())
        if match is not None:
            self._address, self._node = match["address"], match["node"]
        reason = match["reason"] if match is not None else error.str()
        self._reason = _CONNECT.sub("", reason).strip().rstrip(".")
        self._code = error.code()
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) or error.fatal():
            self._final = True

    def check(self) -> None:
        """Raises Failure once nothing can be hoped for."""
        # A name such as localhost may stand for several addresses, tried in turn: each gets its chance.
        if self._final or (self._all_down and self._failures >= _addresses(self._bootstrap)):
            raise Failure(self._sentence(), Exit.UNREACHABLE)

    def forget(self) -> None:
        """Called when a broker answers again, by a command that keeps running through an outage."""
        self._all_down = False
        self._failures = 0

    def cause_in_brackets(self) -> str:
        return f" ({_lower(self._reason)})" if self._reason else ""

    def silence(self, seconds: float) -> Failure:
        """No broker refused, and none answered in this time."""
        if mismatch := self._mismatch():
            return Failure(mismatch, Exit.UNREACHABLE)
        cause = self.cause_in_brackets()
        if not cause and _is_listening(self._bootstrap):
            cause = " (something listens there; it hangs, or it is no broker)"
        return Failure(
            f"No broker answered at {self._bootstrap} within {seconds:.0f} s{cause}; check {self._names.servers} and that the "
            "broker runs.",
            Exit.UNREACHABLE,
        )

    def _sentence(self) -> str:
        cause = self.cause_in_brackets()
        if self._code == KafkaError._AUTHENTICATION:
            # A listener where nobody has to log in has no other answer to a login.
            mismatch = self._mismatch() if "current SASL state" in self._reason else None
            return (
                mismatch
                or f"The broker at {self._address} refused the login{cause}; check sasl.* in {self._names.client}."
            )
        if self._code == KafkaError._SSL:
            return f"No TLS connection to {self._address}{cause}; check ssl.* in {self._names.client}."
        if self._code == KafkaError._RESOLVE:
            host = self._address.rpartition(":")[0]
            return f"The host name {host} cannot be resolved; check {self._names.servers}."
        if self._node != "bootstrap":
            return (
                f"The cluster says that broker {self._node} is at {self._address}, but nothing answers there{cause}"
                "; start that broker with --advertise set to an address that this machine can reach."
            )
        if mismatch := self._mismatch():
            return mismatch
        if _is_loopback(self._bootstrap):
            return (
                f"No broker answers at {self._bootstrap}{cause}; start one with "
                f"'headrace up --listen {self._bootstrap}', or name a running one with {self._names.servers}."
            )
        return f"No broker answers at {self._bootstrap}{cause}; check {self._names.servers} and the broker."

    def _mismatch(self) -> str | None:
        """What to set, if the brokers speak another security protocol than the client, or want a certificate."""
        from headrace.cli.cluster.probe import (  # only a command that fails needs them
            CERTIFICATE_WANTED,
            spoken_at,
        )

        if CERTIFICATE_WANTED in self._reason:
            return (
                f"The broker at {self._address} wants a client certificate: set ssl.keystore.location to one that it trusts, in "
                f"{self._names.client}."
            )
        found = spoken_at(self._bootstrap)
        if found is None or found[1] == self._protocol:
            return None
        address, spoken = found
        login = " and sasl.* to a login" * (
            spoken.startswith("SASL_") and not self._protocol.startswith("SASL_")
        )
        return (
            f"The broker at {address} speaks {spoken}, and the client {self._protocol}: set security.protocol={spoken}{login} in "
            f"{self._names.client}."
        )


def _is_loopback(bootstrap: str) -> bool:
    host = bootstrap.rpartition(":")[0]
    return "," not in bootstrap and (host in ("localhost", "[::1]") or host.startswith("127."))


def _is_listening(bootstrap: str) -> bool:
    for server in bootstrap.split(","):
        try:
            socket.create_connection(split_address(server), timeout=1.0).close()
        except (OSError, ValueError):
            continue
        return True
    return False


def _addresses(bootstrap: str) -> int:
    count = 0
    for server in bootstrap.split(","):
        try:
            count += len(socket.getaddrinfo(*split_address(server), type=socket.SOCK_STREAM))
        except (OSError, ValueError):
            count += 1
    return count


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text

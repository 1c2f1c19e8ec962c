"""One cluster to administer: librdkafka's admin client, and connections of our own for what librdkafka has no call for.

A `Caller` decides how long to wait for librdkafka and what its errors look like, so that a program's `Admin` and a command
share every operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from headrace.client.administration.errors import LoginRefused, NotPossible, Refused, Unreachable
from headrace.client.errors import BrokerError, ConfigError
from headrace.link.errors import BrokerUnavailable, SettingsError
from headrace.wire.errors import ErrorCode
from headrace.wire.errors import KafkaError as ProtocolError
from headrace.wire.schema import Request, Response

if TYPE_CHECKING:
    from headrace.link.blocking import Connection
    from headrace.link.cluster import Cluster
    from headrace.link.opening import Offer
    from headrace.link.settings import KafkaSettings

Key = TypeVar("Key")
R = TypeVar("R", bound=Response)

COORDINATOR_PATIENCE = 15.0
"""Seconds in which a coordinator may move or load."""
_LOGIN = (ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_SASL_MECHANISM)
_PASSING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class Caller(Protocol):
    """How the user of a session waits; ``doing`` says what for, as in "creating topic orders"."""

    def wait(self, future: Future[Any], doing: str) -> Any:
        """The result; raises what `refusal` makes of librdkafka's error."""

    def refusal(self, error: KafkaError, doing: str) -> BrokerError: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """How long librdkafka may take, in seconds; without `for_each_request` it keeps its own limits, and only the caller's
    waiting ends."""

    timeout: float
    for_each_request: bool = False

    @property
    def request(self) -> dict[str, float]:
        """As keyword arguments."""
        return {"request_timeout": self.timeout} if self.for_each_request else {}

    @property
    def change(self) -> dict[str, float]:
        """As keyword arguments of a request that changes something."""
        return {**self.request, "operation_timeout": self.timeout} if self.for_each_request else {}


class Session:
    def __init__(
        self,
        librdkafka: AdminClient,
        settings: Mapping[str, str],
        caller: Caller,
        limits: Limits,
    ) -> None:
        """`settings` are the user's, by librdkafka's names."""
        self.librdkafka = librdkafka
        self.limits = limits
        self._settings = settings
        self._caller = caller

    # librdkafka.

    def wait(self, future: Future[Any], doing: str) -> Any:
        return self._caller.wait(future, doing)

    def refusal(self, error: KafkaError, doing: str) -> BrokerError:
        return self._caller.refusal(error, doing)

    def wait_for_all(
        self, futures: Mapping[Key, Future[Any]], doing: Callable[[Key], str]
    ) -> tuple[dict[Key, Any], dict[Key, BrokerError]]:
        """Answers by key, and refusals by key."""
        answers: dict[Key, Any] = {}
        refusals: dict[Key, BrokerError] = {}
        for key, future in futures.items():
            try:
                answers[key] = self.wait(future, doing(key))
            except BrokerError as refused:
                refusals[key] = refused
        return answers, refusals

    @cached_property
    def nodes(self) -> list[Any]:
        """The brokers that were alive when this was first asked, each with `id`, `host` and `port`."""
        future = self.librdkafka.describe_cluster(**self.limits.request)
        return list(self.wait(future, "describing the cluster").nodes)

    def look_again(self) -> None:
        """Ask for the live brokers anew: a process that runs for weeks sees them come and go."""
        self.__dict__.pop("nodes", None)

    # Connections of our own.

    def call(self, request: Request[R], node: int | None = None) -> R:
        """Ask one broker, or any, in the newest version both sides know."""
        with self.connect(node) as connection:
            try:
                return connection.call(request)
            except ProtocolError as error:
                raise _refused(error) from None
            except BrokerUnavailable as error:
                raise Unreachable(str(error)) from None

    def offers(self, node: int) -> Offer:
        """The versions of each request that a broker serves."""
        with self.connect(node) as connection:
            return connection.offer

    def connect(self, node: int | None = None) -> Connection:
        """A connection to one broker, or to any; the caller closes it."""
        chosen = [each for each in self.nodes if node is None or each.id == node]
        if not chosen:
            known = ", ".join(str(each.id) for each in self.nodes)
            raise NotPossible(f"There is no broker {node}; the live ones are {known}.")
        for each in chosen[:-1]:
            try:
                return self._open(each)
            except Unreachable:
                continue  # it may have died without the cluster knowing yet; another can answer as well
        return self._open(chosen[-1])

    def call_coordinator(self, kind: int, key: str, request: Request[R], error_of: Callable[[R], int]) -> R:
        """Ask the coordinator of a group or a transactional id; `error_of` finds the error code in a reply.

        Asks again while the coordinator moves or loads; any other error code is the caller's to judge.
        """

        def passing(reply: R) -> int:
            return error_of(reply) if error_of(reply) in _PASSING else ErrorCode.NONE

        try:
            return self._link.call_coordinator(kind, key, request, passing, COORDINATOR_PATIENCE)
        except ProtocolError as error:
            raise _refused(error) from None
        except BrokerUnavailable as error:
            raise Unreachable(str(error)) from None

    def coordinator(self, kind: int, key: str) -> int:
        """The id of the broker that coordinates a group or a transactional id, once it has been asked."""
        return self._link.coordinator_id(kind, key)

    def close(self) -> None:
        if "_link" in self.__dict__:
            self._link.close()

    @cached_property
    def _kafka_settings(self) -> KafkaSettings:
        from headrace.link.settings import KafkaSettings

        try:
            return KafkaSettings.of(self._settings, "asking a broker")
        except SettingsError as error:
            raise ConfigError(str(error)) from None

    @cached_property
    def _link(self) -> Cluster:
        # Most operations need librdkafka alone; a command that lists topics starts faster without this.
        from headrace.link.cluster import Cluster

        return Cluster(self._kafka_settings)

    def _open(self, node: Any) -> Connection:
        from headrace.link.blocking import Connection

        try:
            return Connection(node.host, node.port, self._kafka_settings)
        except ProtocolError as error:
            raise LoginRefused(error.code, error.message) from None
        except BrokerUnavailable as error:
            raise Unreachable(str(error)) from None


def _refused(error: ProtocolError) -> Refused:
    kind = LoginRefused if error.code in _LOGIN else Refused
    return kind(error.code, error.message)

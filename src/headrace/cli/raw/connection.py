"""One broker, asked what librdkafka cannot ask: a connection for a question or two, and a Failure for what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TypeVar

from headrace.cli.failure import Exit, Failure
from headrace.cli.raw.refused import RequestRefused
from headrace.link.blocking import Connection
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import KafkaSettings, SettingsError
from headrace.wire.errors import KafkaError
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)


class BrokerConnection:
    def __init__(self, host: str, port: int, properties: Mapping[str, str]) -> None:
        """`properties` are the user's, by librdkafka's names."""
        self.address = f"{host}:{port}"
        try:
            settings = KafkaSettings.of(properties, "asking a broker", client_id="headrace-cli")
            self._connection = Connection(host, port, settings)
        except SettingsError as error:
            raise Failure(str(error)) from None
        except KafkaError as error:
            raise Failure(
                f"{error} Check the client settings sasl.* and ssl.*, in --command-config or the context."
            ) from None
        except BrokerUnavailable as error:
            raise _unreachable(error) from None

    def __enter__(self) -> BrokerConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """The versions the broker offers, by API key."""
        return self._connection.offer.versions

    def ask(self, request: Request[R]) -> R:
        """In the newest version both sides know. RequestRefused when the broker does not offer the request."""
        try:
            return self._connection.call(request)
        except KafkaError as error:
            raise RequestRefused(error.code, str(error)) from None
        except BrokerUnavailable as error:
            raise _unreachable(error) from None


def _unreachable(error: BrokerUnavailable) -> Failure:
    text = str(error)
    return Failure(f"{text[0].upper()}{text[1:]}.", Exit.UNREACHABLE)

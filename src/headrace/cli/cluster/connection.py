"""One cluster as the commands see it: clients built from the user's properties, and waiting for answers.

Promises that a command never hangs on a broker that is not there: librdkafka retries for ever, but the first
report that every known broker is down ends the command with the address and the cause.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.cli.cluster.trouble import Names, Trouble
from headrace.cli.failure import Exit, Failure, did_you_mean
from headrace.cli.parsing import properties
from headrace.client.administration import topics
from headrace.client.administration.errors import (
    LoginRefused,
    NotPossible,
    UnknownTopic,
    Unreachable,
    refused_by_librdkafka,
    sentence,
)
from headrace.client.administration.session import Limits, Session
from headrace.client.errors import BrokerError, ClientError
from headrace.link.contexts import ContextServers, properties_of
from headrace.link.errors import SettingsError
from headrace.link.java_settings import known_names
from headrace.link.java_values import check_assignors
from headrace.link.logins import TOKEN_LOGIN
from headrace.link.tls import unreadable_file
from headrace.link.translation import translate

if TYPE_CHECKING:
    from confluent_kafka import ShareConsumer

P = ParamSpec("P")
T = TypeVar("T")

TIMEOUT = 30.0  # seconds a broker that is connected may take to answer
_PATIENCE = 10.0  # seconds until a first connection

# librdkafka reports through the error callback; its log lines would only repeat that on stderr.
_SILENT = logging.getLogger("headrace.cli.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class Refused(Failure):
    """The cluster refused; `error` is Kafka's error code."""

    def __init__(self, sentence: str, error: int) -> None:
        super().__init__(sentence)
        self.error = error

    @classmethod
    def of(cls, error: KafkaError) -> Refused:
        return cls(sentence(error), error.code())


class Cluster:
    """Use `connect` to make one: it is then known to answer."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str], names: Names) -> None:
        self.bootstrap = bootstrap
        self._settings = {"client.id": "headrace-cli", **settings, "bootstrap.servers": bootstrap}
        self.trouble = Trouble(bootstrap, names, settings.get("security.protocol", "PLAINTEXT").upper())
        admin: AdminClient = self._build(AdminClient, {})
        self.session = Session(admin, self._settings, self, Limits(TIMEOUT, for_each_request=True))
        self.nodes = self.session.nodes = self._await_connection(admin)

    @property
    def settings(self) -> dict[str, str]:
        """The user's settings by librdkafka's names, for a client of another kind."""
        return dict(self._settings)

    # --- clients ---

    def producer(self, settings: Mapping[str, str | int | bool], /, **callbacks: Any) -> Producer:
        # The Java client's partitioner, so that a key goes where every other producer puts it.
        producer: Producer = self._build(Producer, {"partitioner": "murmur2_random", **settings}, **callbacks)
        return producer

    def consumer(self, settings: Mapping[str, str | int | bool], /, **callbacks: Any) -> Consumer:
        try:
            check_assignors(self._settings.get("partition.assignment.strategy", ""))
        except SettingsError as error:
            raise Failure(str(error)) from None
        # By default a full queue pauses fetching for a whole second, and a reader in a hurry empties it in less.
        consumer: Consumer = self._build(Consumer, {"fetch.queue.backoff.ms": 10, **settings}, **callbacks)
        return consumer

    def share_consumer(self, settings: Mapping[str, str | int | bool], /) -> ShareConsumer:
        # Imported here: librdkafka has it from 2.16 on.
        try:
            from confluent_kafka import ShareConsumer
        except ImportError:
            raise Failure(
                "Share groups need confluent-kafka 2.16 or newer: pip install -U confluent-kafka."
            ) from None
        consumer: ShareConsumer = self._build(ShareConsumer, settings)
        return consumer

    def _build(self, client: type[Any], settings: Mapping[str, Any], /, **callbacks: Any) -> Any:
        # A command is over before anybody could look at its metrics (KIP-714).
        quiet = {"enable.metrics.push": False}
        config: dict[str, Any] = {
            **quiet,
            **settings,
            **self._settings,
            "error_cb": self.trouble.report,
            **callbacks,
        }
        while True:
            try:
                return client(config, logger=_SILENT)
            except KafkaException as refusal:
                unknown = re.search(r'No such configuration property: "([^"]+)"', str(refusal.args[0].str()))
                if unknown is None or unknown[1] not in self._settings:
                    why = unreadable_file(self._settings) or sentence(refusal.args[0])
                    raise Failure(f"The client settings are not usable: {why}") from None
                hint = did_you_mean(unknown[1], known_names())
                print(
                    f"headrace: the client setting '{unknown[1]}' is unknown and ignored.{hint}",
                    file=sys.stderr,
                )
                del self._settings[unknown[1]], config[unknown[1]]

    # --- operations ---

    def call(
        self, operation: Callable[Concatenate[Session, P], T], /, *arguments: P.args, **options: P.kwargs
    ) -> T:
        """An operation of `client/administration` on this cluster; what it raises becomes a Failure."""
        with self.failures():
            return operation(self.session, *arguments, **options)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """What `headrace.client` raises inside becomes a Failure."""
        try:
            yield
        except ClientError as error:
            raise self._failure(error) from None

    def _failure(self, error: ClientError) -> Failure:
        """An error of an operation, as the user reads it."""
        if isinstance(error, UnknownTopic):
            return self.unknown_topic(error.topic)
        if isinstance(error, LoginRefused):
            return Failure(
                f"{str(error).removesuffix('.')}. Check the client settings sasl.* and ssl.*, in --command-config or the context."
            )
        if isinstance(error, Unreachable):
            return Failure(str(error), Exit.UNREACHABLE)
        return Refused(str(error), error.code) if isinstance(error, BrokerError) else Failure(str(error))

    def unknown_topic(self, topic: str) -> Failure:
        hint = did_you_mean(topic, self.call(topics.names, internal=True))
        remedy = hint or " 'headrace topics list' shows what there is."
        return Failure(f"There is no topic '{topic}'.{remedy}")

    # --- waiting for librdkafka, as `Session` asks for ---

    def wait(self, future: Future[Any], doing: str) -> Any:
        while not wait([future], timeout=0.02).done:
            self.session.librdkafka.poll(0)
            self.trouble.check()
        try:
            return future.result()
        except KafkaException as error:
            raise self.refusal(error.args[0], doing) from None
        except (TypeError, ValueError) as mistake:
            raise NotPossible(f"{mistake}.") from None

    def refusal(self, error: KafkaError, doing: str) -> BrokerError:
        return refused_by_librdkafka(error)

    def _await_connection(self, admin: AdminClient) -> list[Any]:
        future = admin.describe_cluster(request_timeout=_PATIENCE)
        deadline = time.monotonic() + _PATIENCE
        while not wait([future], timeout=0.02).done and time.monotonic() < deadline:
            admin.poll(0)
            self.trouble.check()
        if not future.done() or future.exception() is not None:
            raise self.trouble.silence(_PATIENCE)
        return list(future.result().nodes)


def connect(
    bootstrap: str,
    command_config: Path | None = None,
    extra: Mapping[str, str] | None = None,
    names: Names = Names(),  # noqa: B008  it is frozen
) -> Cluster:
    """Connect with a context's properties, a file's, and `extra` ones; later ones win. Raises Failure when no broker answers."""
    settings = settings_of(bootstrap, command_config, extra)
    if isinstance(bootstrap, ContextServers):
        names = Names("--context", f"the context '{bootstrap.context.name}'")
    return Cluster(str(bootstrap), settings, names)


def settings_of(
    bootstrap: str, command_config: Path | None = None, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """How to be let in, by librdkafka's names and without the servers; asks nobody."""
    file = properties.load(command_config) if command_config else {}
    settings = librdkafka_settings({**properties_of(bootstrap), **file, **(extra or {})})
    settings.pop("bootstrap.servers", None)
    return settings


def librdkafka_settings(given: Mapping[str, str]) -> dict[str, str]:
    """The user's properties by librdkafka's names; what was removed from Kafka is noted on stderr."""
    try:
        translation = translate(given)
    except SettingsError as error:
        raise Failure(str(error)) from None
    if TOKEN_LOGIN in translation.settings:
        raise Failure(
            "The commands cannot log in with a delegation token (tokenauth=true); give them a user."
        )
    for note in translation.notes:
        print(f"headrace: {note}", file=sys.stderr)
    return translation.settings

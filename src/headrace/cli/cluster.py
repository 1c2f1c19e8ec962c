"""One cluster as the commands see it: clients built from the user's properties, and waiting for answers.

Promises that a command never hangs on a broker that is not there: librdkafka retries for ever, but the first
report that every known broker is down ends the command with the address and the cause.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.cli import properties
from headrace.cli.failure import Exit, Failure, did_you_mean
from headrace.cli.trouble import Names, Trouble
from headrace.link.contexts import ContextServers, properties_of
from headrace.link.errors import SettingsError
from headrace.link.java_settings import known_names
from headrace.link.java_values import check_assignors
from headrace.link.logins import TOKEN_LOGIN
from headrace.link.translation import translate

if TYPE_CHECKING:
    from headrace.cli.raw.connection import BrokerConnection

Key = TypeVar("Key")

TIMEOUT = 30.0  # seconds a broker that is connected may take to answer
_PATIENCE = 10.0  # seconds until a first connection

# librdkafka reports through the error callback; its log lines would only repeat that on stderr.
_SILENT = logging.getLogger("headrace.cli.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class Refused(Failure):
    """The cluster answered with an error."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(sentence(error))
        self.error = error


def sentence(error: KafkaError) -> str:
    text = re.sub(r"^(Broker|Local): ", "", error.str()).strip() or error.name()
    return text if text.endswith(".") else f"{text}."


class Cluster:
    """Use `connect` to make one: it is then known to answer."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str], names: Names) -> None:
        self.bootstrap = bootstrap
        self._settings = {"client.id": "headrace-cli", **settings, "bootstrap.servers": bootstrap}
        self.trouble = Trouble(bootstrap, names)
        self.admin: AdminClient = self._build(AdminClient, {})
        self.nodes = self._await_connection()

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

    def _build(self, client: type[Any], settings: Mapping[str, Any], /, **callbacks: Any) -> Any:
        config: dict[str, Any] = {**settings, **self._settings, "error_cb": self.trouble.report, **callbacks}
        while True:
            try:
                return client(config, logger=_SILENT)
            except KafkaException as refusal:
                unknown = re.search(r'No such configuration property: "([^"]+)"', str(refusal.args[0].str()))
                if unknown is None or unknown[1] not in self._settings:
                    raise Failure(
                        f"The client settings are not usable: {sentence(refusal.args[0])}"
                    ) from None
                hint = did_you_mean(unknown[1], known_names())
                print(
                    f"headrace: the client setting '{unknown[1]}' is unknown and ignored.{hint}",
                    file=sys.stderr,
                )
                del self._settings[unknown[1]], config[unknown[1]]

    def broker(self, node_id: int | None = None) -> BrokerConnection:
        """A connection of our own to one broker (any, when none is named), for what librdkafka cannot ask."""
        from headrace.cli.raw.connection import BrokerConnection

        chosen = [node for node in self.nodes if node_id is None or node.id == node_id]
        if not chosen:
            known = ", ".join(str(node.id) for node in self.nodes)
            raise Failure(f"There is no broker {node_id}; the live ones are {known}.")
        for node in chosen[:-1]:
            try:
                return BrokerConnection(node.host, node.port, self._settings)
            except Failure as failure:
                # It may have died without the cluster knowing yet; another can answer as well.
                if failure.code is not Exit.UNREACHABLE:
                    raise
        return BrokerConnection(chosen[-1].host, chosen[-1].port, self._settings)

    # --- answers ---

    def ask(self, future: Future[Any]) -> Any:
        """The answer to an admin request. Raises Refused on a no, Failure when nobody answers."""
        while not wait([future], timeout=0.02).done:
            self.admin.poll(0)
            self.trouble.check()
        try:
            return future.result()
        except KafkaException as refusal:
            raise Refused(refusal.args[0]) from None
        except (TypeError, ValueError) as mistake:
            raise Failure(f"{mistake}.") from None

    def ask_all(self, futures: Mapping[Key, Future[Any]]) -> tuple[dict[Key, Any], dict[Key, Refused]]:
        """Answers by key, and refusals by key."""
        answers: dict[Key, Any] = {}
        refusals: dict[Key, Refused] = {}
        for key, future in futures.items():
            try:
                answers[key] = self.ask(future)
            except Refused as refused:
                refusals[key] = refused
        return answers, refusals

    def _await_connection(self) -> list[Any]:
        future = self.admin.describe_cluster(request_timeout=_PATIENCE)
        deadline = time.monotonic() + _PATIENCE
        while not wait([future], timeout=0.02).done and time.monotonic() < deadline:
            self.admin.poll(0)
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
    """Connect with a context's properties, a file's, and `extra` ones; the later win. Raises Failure when nobody answers."""
    file = properties.load(command_config) if command_config else {}
    given = {**properties_of(bootstrap), **file, **(extra or {})}
    if isinstance(bootstrap, ContextServers):
        names = Names("--context", f"the context '{bootstrap.context.name}'")
    settings = librdkafka_settings(given)
    settings.pop("bootstrap.servers", None)
    return Cluster(str(bootstrap), settings, names)


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

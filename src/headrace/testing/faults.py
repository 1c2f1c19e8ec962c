"""Requests that go wrong when a test says so: dropped, answered but unheard, delayed, refused.

A fault waits for the next requests of one API, from any client, and is used up by them. What one broker says to
another is spared unless a test asks for it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from headrace.server.api.dispatch import Dispatcher
from headrace.server.api.engines import Engines
from headrace.server.api.registry import APIS, Api
from headrace.server.cluster.peers import CLIENT_ID
from headrace.server.net.connection import Connection
from headrace.testing.refusals import refusal
from headrace.wire.codec import WireError, decode
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import encode_reply, read_client_id, read_request_start

Act = Callable[["FaultyDispatcher", Connection, memoryview], None]


@dataclass(slots=True)
class _Fault:
    key: int
    act: Act
    left: int
    brokers: bool


class Faults:
    """The faults of one broker; set from the test's thread. An API goes by its name: "Produce", "EndTxn", "fetch"."""

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self._lock = threading.Lock()

    def drop(self, api: str, times: int = 1, *, brokers: bool = False) -> None:
        """The next requests are never served: their connections break before."""
        self._add(
            api, lambda dispatcher, connection, frame: connection.cut("a test dropped it"), times, brokers
        )

    def drop_reply(self, api: str, times: int = 1, *, brokers: bool = False) -> None:
        """The next requests are served, and their connections break in place of the answer."""

        def act(dispatcher: FaultyDispatcher, connection: Connection, frame: memoryview) -> None:
            dispatcher.serve(connection, frame)
            connection.cut("a test dropped the answer")

        self._add(api, act, times, brokers)

    def delay(self, api: str, seconds: float, times: int = 1, *, brokers: bool = False) -> None:
        """The next requests are served so much later, on the broker's clock; what follows on their connections waits."""

        def act(dispatcher: FaultyDispatcher, connection: Connection, frame: memoryview) -> None:
            dispatcher.serve_later(connection, frame, seconds)

        self._add(api, act, times, brokers)

    def error(self, api: str, code: ErrorCode | str, times: int = 1, *, brokers: bool = False) -> None:
        """The next requests are not served but answered with an error, such as "NOT_LEADER_OR_FOLLOWER"."""
        try:
            refused = ErrorCode[code] if isinstance(code, str) else ErrorCode(code)
        except (KeyError, ValueError):
            raise ValueError(
                f"Kafka has no error {code}; headrace.wire.errors.ErrorCode has them all."
            ) from None

        def act(dispatcher: FaultyDispatcher, connection: Connection, frame: memoryview) -> None:
            dispatcher.refuse(connection, frame, refused)

        self._add(api, act, times, brokers)

    def heal(self) -> None:
        """Forget the faults that are left."""
        with self._lock:
            self._faults.clear()

    @property
    def left(self) -> int:
        """How many requests are still going to meet a fault."""
        with self._lock:
            return sum(fault.left for fault in self._faults)

    def take(self, frame: memoryview) -> Act | None:
        """What is to happen to this request, if anything; the oldest fault of its API comes first."""
        if not self._faults:
            return None
        key, _, _ = read_request_start(frame)
        with self._lock:
            for fault in self._faults:
                if fault.key == key and (fault.brokers or not _from_broker(frame)):
                    fault.left -= 1
                    if fault.left <= 0:
                        self._faults.remove(fault)
                    return fault.act
        return None

    def _add(self, api: str, act: Act, times: int, brokers: bool) -> None:
        if times < 1:
            raise ValueError(f"A fault meets at least one request, not {times}.")
        with self._lock:
            self._faults.append(_Fault(_key_of(api), act, times, brokers))


class FaultyDispatcher(Dispatcher):
    """A broker's dispatcher that looks for a fault first."""

    def __init__(self, engines: Engines, faults: Faults) -> None:
        super().__init__(engines)
        self._faults = faults

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        act = self._faults.take(frame)
        if act is None:
            super().dispatch(connection, frame)
        else:
            act(self, connection, frame)

    def serve(self, connection: Connection, frame: memoryview) -> None:
        super().dispatch(connection, frame)

    def serve_later(self, connection: Connection, frame: memoryview, seconds: float) -> None:
        kept = memoryview(bytearray(frame))
        connection.mute()
        self._engines.clock.call_later(seconds, lambda: self._serve_now(connection, kept))

    def _serve_now(self, connection: Connection, frame: memoryview) -> None:
        if connection.transport.is_closing():
            return
        connection.unmute()
        self.turn.begin()
        try:
            super().dispatch(connection, frame)
        except WireError as error:
            connection.cut(str(error))
        finally:
            self.turn.end()
        connection.parse()

    def refuse(self, connection: Connection, frame: memoryview, code: ErrorCode) -> None:
        key, version, correlation_id = read_request_start(frame)
        api = APIS[key]
        api.load()
        _, position = read_client_id(frame, version >= api.request.FLEXIBLE)
        request, _ = decode(api.request, version, frame, position)
        if getattr(request, "acks", None) == 0:
            connection.cut(f"a test refused it with {code.name}")  # No answer is expected.
            return
        reply = refusal(request, version, api.response, code)
        connection.replies.send(encode_reply(reply, version, correlation_id))


def _from_broker(frame: memoryview) -> bool:
    return bytes(frame[10 : 10 + len(CLIENT_ID)]) == CLIENT_ID.encode()


def _key_of(api: str) -> int:
    """`EndTxn` and `end_txn` are the same."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api).lower()
    found: Api | None = next((each for each in APIS.values() if each.name == name), None)
    if found is None:
        from headrace.nearest import nearest

        near = nearest(name, [each.name for each in APIS.values()])
        hint = f" Did you mean {near.title().replace('_', '')}?" if near else ""
        raise ValueError(f"No API is called {api}.{hint}")
    return found.key

"""What one request uses of its client's quotas: bytes, and time on the broker's loop.

The reply is sent at once and says how long the client has to wait; its connection is muted for that long (KIP-219).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

from headrace.server.quotas.arithmetic import INT_MAX
from headrace.server.quotas.client_quotas import Allowance, ClientQuotas

T = TypeVar("T")


class Throttled(Protocol):
    """A connection, as far as it matters here."""

    def throttle(self, seconds: float) -> None:
        """Serve no further request for so long."""
        ...


class Meter:
    """Runs while the request is being worked on. A broker's own requests have none."""

    __slots__ = ("_allowance", "_connection", "_mutation", "_quotas", "_since", "_spent", "size")

    def __init__(self, quotas: ClientQuotas, connection: Throttled, allowance: Allowance, size: int) -> None:
        self._quotas = quotas
        self._connection = connection
        self._allowance = allowance
        self.size = size
        """Bytes of the request, without its header."""
        self._spent = 0.0
        self._since: float | None = quotas.monotonic()
        """When it was resumed; None while it is paused."""
        self._mutation = (0, 0)
        """How long the client has to wait for partitions it changed, and since when."""

    def resume(self) -> None:
        self._since = self._quotas.monotonic()

    def pause(self) -> None:
        if self._since is not None:
            self._spent += self._quotas.monotonic() - self._since
            self._since = None

    # When the request is answered: how many milliseconds the client has to wait.

    def answered(self) -> int:
        now = self._quotas.monotonic()
        wait, since = self._mutation
        return self._wait(max(wait - (_ms(now) - since), self._request(self._current(), now), 0))

    def produced(self, replied: bool = True) -> int:
        """Request time does not count when there is no reply to tell the client to wait."""
        allowance, now = self._current(), self._quotas.monotonic()
        used = 0 if allowance.produce is None else allowance.produce.record(self.size, _ms(now))
        requested = self._request(allowance, now) if replied else 0
        return self._wait(max(used, requested)) if used or requested else 0

    def fetched(self, size: int) -> tuple[int, bool]:
        """Also whether the client gets nothing of what was found."""
        allowance, now = self._current(), self._quotas.monotonic()
        fetch, used, refused = allowance.fetch, 0, False
        if fetch is not None:
            used, refused = fetch.record_or_refuse(size, _ms(now))
        requested = self._request(allowance, now)
        if requested and not refused and fetch is not None:
            fetch.take_back(size, _ms(now))
        return self._wait(max(used, requested)), refused or requested > 0

    def most_fetched(self) -> int:
        """A fetch of more would be throttled every time."""
        fetch = self._current().fetch
        return INT_MAX if fetch is None else fetch.most_at_once

    def must_wait(self, milliseconds: int) -> None:
        """The controller says so, for the partitions that the request changed."""
        self._mutation = milliseconds, _ms(self._quotas.monotonic())

    def _current(self) -> Allowance:
        """Quotas may have changed while the request waited."""
        allowance = self._allowance
        if allowance.generation != self._quotas.generation:
            allowance = self._allowance = allowance.renewed(self._quotas)
        return allowance

    def _request(self, allowance: Allowance, now: float) -> int:
        request = allowance.request
        if request is None:
            return 0
        if self._since is not None:
            self._spent += now - self._since
            self._since = now
        percent_seconds = self._spent * 100
        self._spent = 0.0
        return request.record(percent_seconds, _ms(now))

    def _wait(self, milliseconds: int) -> int:
        if milliseconds > 0:
            self._quotas.throttled += 1
            self._quotas.throttled_ms += milliseconds
            self._connection.throttle(milliseconds / 1000)
        return milliseconds


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


class Metered(Generic[T]):
    """A coroutine whose steps count as time of its request, and whose waiting does not."""

    __slots__ = ("_meter", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], meter: Meter) -> None:
        self._work = work
        self._meter = meter

    def __await__(self) -> Generator[Any, Any, T]:
        work, meter = self._work, self._meter
        step: Callable[[Any], Any] = work.send
        sent: Any = None
        while True:
            meter.resume()
            try:
                awaited = step(sent)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                meter.pause()
            try:
                sent = yield awaited
                step = work.send
            except BaseException as error:
                step, sent = work.throw, error

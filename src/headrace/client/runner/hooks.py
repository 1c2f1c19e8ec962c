"""What a runner reports: an interface, and hooks for Prometheus and OpenTelemetry.

A hook that fails is logged and never disturbs a record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.client.errors import ConfigError, require
from headrace.client.positions import Offsets
from headrace.client.record import HeadersLike, Record, TopicPartition, header_list

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer
    from prometheus_client import CollectorRegistry

ExitHook = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], bool]
log = logging.getLogger("headrace.client.runner")


class Hook:
    """Override what you need. Called from the threads that handle records.

    >>> class Alarm(Hook):
    ...     def dead_letter(self, record, attempt, error):
    ...         print("given up:", record, error)
    """

    def handling(self, record: Record[Any, Any], attempt: int) -> AbstractContextManager[object]:
        """Entered around each call of the handler, which sees the context variables set here."""
        return nullcontext()

    def handled(self, record: Record[Any, Any], seconds: float) -> None: ...

    def failed(
        self, record: Record[Any, Any], attempt: int, error: BaseException, retry_in: float | None
    ) -> None: ...

    def dead_letter(self, record: Record[Any, Any], attempt: int, error: BaseException) -> None: ...

    def loaded(self, waiting: dict[TopicPartition, int], paused: int) -> None:
        """Now and then: unfinished records of each partition and how many partitions are held back."""

    def committed(self, offsets: Offsets) -> None: ...


class Metrics(Hook):
    """Counts and times in the Prometheus client's registry; one for all runners of a process.

    >>> Runner(handle, "localhost:9092", topics="orders", group_id="billing", hooks=[Metrics()])
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        prometheus = require("prometheus_client", "metrics", "Metrics")
        registry = prometheus.REGISTRY if registry is None else registry
        counter, gauge = prometheus.Counter, prometheus.Gauge
        try:
            self._handled = counter(
                "headrace_records_handled", "Records handled to the end", ["topic"], registry=registry
            )
        except ValueError:
            raise ConfigError(
                "this registry has a runner's metrics already: give one Metrics to all runners of the process"
            ) from None
        self._failures = counter(
            "headrace_record_failures", "Attempts that raised", ["topic", "error"], registry=registry
        )
        self._dead = counter(
            "headrace_dead_letters", "Records given up and set aside", ["topic"], registry=registry
        )
        self._seconds = prometheus.Histogram(
            "headrace_handler_seconds", "Time of one successful call", ["topic"], registry=registry
        )
        self._waiting = gauge(
            "headrace_unfinished_records",
            "Records read and not finished in order",
            ["topic", "partition"],
            registry=registry,
        )
        self._paused = gauge("headrace_paused_partitions", "Partitions held back", registry=registry)
        self._offset = gauge(
            "headrace_committed_offset", "Offset last committed", ["topic", "partition"], registry=registry
        )

    def handled(self, record: Record[Any, Any], seconds: float) -> None:
        self._handled.labels(record.topic).inc()
        self._seconds.labels(record.topic).observe(seconds)

    def failed(
        self, record: Record[Any, Any], attempt: int, error: BaseException, retry_in: float | None
    ) -> None:
        self._failures.labels(record.topic, type(error).__name__).inc()

    def dead_letter(self, record: Record[Any, Any], attempt: int, error: BaseException) -> None:
        self._dead.labels(record.topic).inc()

    def loaded(self, waiting: dict[TopicPartition, int], paused: int) -> None:
        for (topic, partition), count in waiting.items():
            self._waiting.labels(topic, partition).set(count)
        self._paused.set(paused)

    def committed(self, offsets: Offsets) -> None:
        for (topic, partition), offset in offsets.items():
            self._offset.labels(topic, partition).set(offset)


class Tracing(Hook):
    """A span for each call of the handler, child of the one whose context is in the headers.

    >>> Runner(handle, "localhost:9092", topics="orders", group_id="billing", hooks=[Tracing()])
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._trace = require("opentelemetry.trace", "tracing", "Tracing")
        self._propagate = require("opentelemetry.propagate", "tracing", "Tracing")
        self._tracer = self._trace.get_tracer("headrace.client") if tracer is None else tracer

    def handling(self, record: Record[Any, Any], attempt: int) -> AbstractContextManager[object]:
        return self._span(record, attempt)

    @contextmanager
    def _span(self, record: Record[Any, Any], attempt: int) -> Iterator[None]:
        carrier = {
            name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None
        }
        attributes: dict[str, str | int] = {
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.destination.name": record.topic,
            "messaging.destination.partition.id": str(record.partition),
            "messaging.kafka.offset": record.offset,
            "headrace.attempt": attempt,
        }
        with self._tracer.start_as_current_span(
            f"process {record.topic}",
            context=self._propagate.extract(carrier),
            kind=self._trace.SpanKind.CONSUMER,
            attributes=attributes,
        ):
            yield


def trace_headers(headers: HeadersLike | None = None) -> list[tuple[str, bytes | None]]:
    """The given headers and those that carry the current span, for a record about to be sent.

    >>> producer.send("orders", "one", headers=trace_headers({"source": "shop"}))
    """
    carrier: dict[str, str] = {}
    require("opentelemetry.propagate", "tracing", "Tracing").inject(carrier)
    return [*header_list(headers), *((name, value.encode()) for name, value in carrier.items())]


def around(hooks: Sequence[Hook], record: Record[Any, Any], attempt: int) -> ExitStack:
    """The hooks' contexts around one call of the handler."""
    stack = ExitStack()
    for hook in hooks:
        try:
            context = hook.handling(record, attempt)
            context.__enter__()
        except Exception:
            log.exception("a hook failed")
        else:
            stack.push(_only_listening(context))
    return stack


def tell(hooks: Sequence[Hook], what: str, *about: Any) -> None:
    for hook in hooks:
        try:
            getattr(hook, what)(*about)
        except Exception:
            log.exception("a hook failed")


def _only_listening(context: AbstractContextManager[object]) -> ExitHook:
    """The end of a hook's context: it gets what the handler raised, and can neither hide that nor add to it."""

    def leave(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            context.__exit__(kind, error, trace)
        except Exception:
            log.exception("a hook failed")
        return False

    return leave

"""Waiting for a topic in asyncio: one thread asks for all waiting senders, which continue in the order in which they came."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from confluent_kafka import KafkaError

from headrace.client.known_topics import BETWEEN_TRIES, KnownTopics, more_telling


class _Line:
    """The senders waiting for one topic, and the last answer about it. Only the event loop's thread touches it."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []
        self.problem: KafkaError | None = None
        self.refusal: Exception | None = None


class AwaitedTopics:
    def __init__(self, loop: asyncio.AbstractEventLoop, topics: KnownTopics, max_block: float) -> None:
        self._loop = loop
        self._topics = topics
        self._max_block = max_block
        self._lines: dict[str, _Line] = {}

    async def wait_for(self, topic: str, *, known: bool) -> None:
        """Wait up to max.block.ms for an unknown topic; for a known one, only for senders that came before."""
        line = self._lines.get(topic)
        if line is None:
            if known:
                return
            line = self._lines[topic] = _Line()
            self._ask(topic, line)
        turn = self._loop.create_future()
        line.waiting.append(turn)
        try:
            async with asyncio.timeout(self._max_block):
                await turn
        except TimeoutError:
            raise self._topics.unknown(topic, line.problem) from None
        finally:
            with suppress(ValueError):
                line.waiting.remove(turn)
        if line.refusal is not None:
            raise line.refusal

    def _ask(self, topic: str, line: _Line) -> None:
        def ask() -> None:
            heard: KafkaError | Exception | None
            try:
                heard = self._topics.ask(topic, max(BETWEEN_TRIES, self._max_block))
            except Exception as refusal:
                heard = refusal
            with suppress(RuntimeError):  # the loop was closed in the meantime
                self._loop.call_soon_threadsafe(self._heard, topic, line, heard)

        # None of the loop's own threads: others need those, and the loop waits for them when it ends.
        threading.Thread(target=ask, name="headrace-topic", daemon=True).start()

    def _heard(self, topic: str, line: _Line, heard: KafkaError | Exception | None) -> None:
        if isinstance(heard, KafkaError):
            line.problem = more_telling(line.problem, heard)
            if line.waiting:
                self._loop.call_later(BETWEEN_TRIES, self._ask, topic, line)
            else:
                del self._lines[topic]
        else:
            line.refusal = heard
            self._let_on(topic, line)

    def _let_on(self, topic: str, line: _Line) -> None:
        """Release all waiting senders; the line ends only when they have gone, so that none is overtaken."""
        if not line.waiting:
            del self._lines[topic]
            return
        for turn in line.waiting:
            if not turn.done():
                turn.set_result(None)
        line.waiting.clear()
        self._loop.call_soon(self._let_on, topic, line)

"""One instance from start to stop: reads the topic, takes part in the election, writes while it is the one that does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headrace.link.errors import BrokerUnavailable
from headrace.registry.background import in_background
from headrace.registry.election import Election, Instance, Verdict
from headrace.registry.errors import no_writer
from headrace.registry.following import Following
from headrace.registry.registry import Registry
from headrace.registry.settings import Settings
from headrace.registry.state import State
from headrace.registry.topic import Fenced, TopicError, TopicReader, TopicWriter, ensure
from headrace.registry.writer import Operation, Writer
from headrace.wire.errors import KafkaError

log = logging.getLogger("headrace.registry")

_RETRY = 1.0


class Running:
    """Use `start`, then ask and `change`, then `stop`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State()
        self._parsing = ThreadPoolExecutor(1, "headrace-registry-parse")
        self._writing = ThreadPoolExecutor(1, "headrace-registry-write")
        self.registry = Registry(self.state, self._parsing, settings.level)
        self.following = Following(self.state, TopicReader(settings.kafka, settings.topic))
        self.leader: Instance | None = None
        """The instance that writes, as far as this one knows."""
        self.cluster_id = ""
        self._writer: Writer | None = None
        self._election: Election | None = None
        self._verdicts: asyncio.Queue[Verdict | None] = asyncio.Queue()
        self._decided = asyncio.Event()
        self._verdict: Verdict | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def writes(self) -> bool:
        return self._writer is not None

    async def load(self) -> None:
        """TopicError when the topic cannot be had."""
        settings = self.settings
        try:
            self.cluster_id = await in_background(
                lambda: ensure(settings.kafka, settings.topic, settings.replicas)
            )
        except (BrokerUnavailable, KafkaError) as error:
            raise TopicError(str(error)) from None
        await self.following.load()
        self.following.start()

    async def join(self, instance: Instance) -> None:
        """Take part in the election; returns when the group has agreed for the first time."""
        loop = asyncio.get_running_loop()

        def tell(verdict: Verdict | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._verdicts.put_nowait, verdict)

        settings = self.settings
        self._election = Election(settings.kafka, settings.group, instance, settings.session, tell)
        self._task = asyncio.create_task(self._heed())
        self._election.start()
        await self._decided.wait()

    async def stop(self) -> None:
        self.following.stop()
        if self._task is not None:
            self._task.cancel()
        self._drop_writer()
        if self._election is not None:
            await asyncio.to_thread(self._election.stop)
        self._parsing.shutdown(wait=False, cancel_futures=True)
        self._writing.shutdown(wait=False)

    async def change(self, operation: Operation, scope: str | None, doing: str) -> Any:
        """What an operation replies, once it is in the topic. RegistryError when this instance does not write."""
        if self._writer is None:
            raise no_writer(doing, "the leader is unknown")
        return await self._writer.submit(operation, scope)

    # The election.

    async def _heed(self) -> None:
        while True:
            verdict = await self._verdicts.get()
            while not self._verdicts.empty():
                verdict = self._verdicts.get_nowait()
            self._drop_writer()
            self._verdict = verdict
            self.leader = None
            if verdict is None:
                continue
            if verdict.is_me:
                await self._begin()
            self.leader = verdict.leader
            self._decided.set()

    async def _begin(self) -> None:
        """Try to become the writer until it succeeds or the group chooses another instance."""
        while self._verdicts.empty():
            writer = Writer(
                self.state,
                self.following,
                TopicWriter(
                    self.settings.kafka, self.settings.topic, f"headrace-registry-{self.settings.topic}"
                ),
                self._writing,
                self._lost_writer,
            )
            try:
                await writer.begin()
            except (BrokerUnavailable, KafkaError, Fenced, TimeoutError) as error:
                log.warning("this instance cannot write to %s yet: %s", self.settings.topic, error)
                writer.close()
                await asyncio.sleep(_RETRY)
                continue
            self._writer = writer
            log.info("this instance writes to %s now", self.settings.topic)
            return

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            log.info("this instance writes no more")

    def _lost_writer(self) -> None:
        """The writer was fenced, or cannot tell what it wrote: start again while the group still wants it to write."""
        verdict = self._verdict
        self._drop_writer()
        if self._verdicts.empty():
            asyncio.get_running_loop().call_later(_RETRY, self._again, verdict)

    def _again(self, verdict: Verdict | None) -> None:
        if self._verdict is verdict and self._verdicts.empty() and self._writer is None:
            self._verdicts.put_nowait(verdict)

"""The writer of the elected instance: takes operations in turn, appends their records, and replies when they have been read back.

Operations on different subjects share a batch; the others run alone. What is decided depends on everything before it, so the next batch
is decided when this one has been applied. A reply therefore never tells of an id that a crash could take back or that another writer gave.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from headrace.link.errors import BrokerUnavailable
from headrace.registry.changes import Outcome, Pending, Record
from headrace.registry.errors import RegistryError, no_writer, store_failed, timed_out, too_large
from headrace.registry.following import Following
from headrace.registry.records import SCHEMA, Key, read_key
from headrace.registry.state import State
from headrace.registry.topic import Fenced, TooLarge, TopicWriter
from headrace.wire.errors import KafkaError

log = logging.getLogger("headrace.registry")

_MOST_AT_ONCE = 200
_READ_BACK_SECONDS = 30.0
_TRIES = 5

Operation = Callable[[Pending], Awaitable[Outcome]]


@dataclass(slots=True)
class _Asked:
    operation: Operation
    scope: str | None
    """The subject that it alone looks at and changes; None when it may be anything."""
    reply: asyncio.Future[Any]
    tries: int = 0


class Writer:
    def __init__(
        self,
        state: State,
        following: Following,
        topic: TopicWriter,
        threads: Executor,
        fenced: Callable[[], None],
    ) -> None:
        self._state = state
        self._following = following
        self._topic = topic
        self._threads = threads
        self._fenced = fenced
        """Called when another instance has taken over."""
        self._asked: deque[_Asked] = deque()
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def begin(self) -> None:
        """Fence older writers, and read all they wrote."""
        offset = await self._in_thread(self._topic.begin)
        await self._read_back(offset)
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        """Stop writing; operations still waiting fail because there is no writer."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        while self._asked:
            self._refuse(self._asked.popleft(), no_writer("the", "the leader changes"))
        self._threads.submit(self._topic.close)

    async def submit(self, operation: Operation, scope: str | None) -> Any:
        """The operation's reply, once its records are in the topic and have been read back from it."""
        if self._closed:
            raise no_writer("the", "the leader changes")
        asked = _Asked(operation, scope, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        self._more.set()
        return await asked.reply

    async def _run(self) -> None:
        under_way: list[_Asked] = []
        try:
            while True:
                await self._more.wait()
                under_way = self._next_batch()
                if not self._asked:
                    self._more.clear()
                await self._serve(under_way)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # whatever it is, nobody must wait for ever
            log.exception("the writer of the schemas' topic ended")
            self._fenced()
            raise error
        finally:
            for asked in under_way:
                self._refuse(asked, no_writer("the", "the leader changes"))

    def _next_batch(self) -> list[_Asked]:
        batch: list[_Asked] = []
        scopes: set[str] = set()
        while self._asked and len(batch) < _MOST_AT_ONCE:
            asked = self._asked[0]
            if asked.reply.done():  # its client is gone
                self._asked.popleft()
                continue
            if batch and (asked.scope is None or asked.scope in scopes):
                break
            batch.append(self._asked.popleft())
            if asked.scope is None:
                break
            scopes.add(asked.scope)
        return batch

    async def _serve(self, batch: list[_Asked]) -> None:
        pending = Pending()
        outcomes: list[tuple[_Asked, Outcome]] = []
        for asked in batch:
            try:
                outcome = await asked.operation(pending)
            except RegistryError as error:
                self._refuse(asked, error)
                continue
            if outcome.records:
                outcomes.append((asked, outcome))
            else:
                self._tell(asked, outcome.reply)
        if outcomes:
            await self._write(outcomes)

    async def _write(self, outcomes: list[tuple[_Asked, Outcome]]) -> None:
        records = [record for _, outcome in outcomes for record in outcome.records]
        try:
            offset = await self._in_thread(self._topic.append, records)
            await self._read_back(offset + len(records) - 1)
        except TooLarge:
            await self._one_by_one(outcomes)
            return
        except Fenced:
            log.warning("another instance writes to the schemas' topic now")
            self._fail(outcomes, no_writer("the", "another instance has taken over"))
            self._fenced()
            return
        except TimeoutError:
            self._fail(outcomes, timed_out("Register operation"))
            self._fenced()
            return
        except (BrokerUnavailable, KafkaError) as error:
            # Nobody knows whether it is written: only a new epoch makes sure that it is not written later.
            self._fail(
                outcomes,
                store_failed("Register schema operation failed while writing to the Kafka store", error),
            )
            self._fenced()
            return
        for asked, outcome in outcomes:
            own = range(offset, offset + len(outcome.records))
            offset = own.stop
            taken = self._following.rejected.intersection(own)
            if not taken:
                self._tell(asked, outcome.reply)
                continue
            self._following.rejected -= taken
            await self._take_back([outcome.records[place - own.start] for place in taken])
            asked.tries += 1
            if asked.tries < _TRIES:
                self._asked.appendleft(asked)
                self._more.set()
            else:
                self._refuse(
                    asked,
                    store_failed("Error while registering the schema", "another registry gives the same ids"),
                )

    async def _one_by_one(self, outcomes: list[tuple[_Asked, Outcome]]) -> None:
        """Together, or one of them, they are more than the topic takes: find out which."""
        if len(outcomes) == 1:
            self._refuse(outcomes[0][0], too_large())
            return
        for asked, _ in outcomes:
            await self._serve([asked])

    async def _take_back(self, rejected: list[Record]) -> None:
        """Another registry had the ids first. The keys that were overwritten get back what this instance has under them."""
        restored: list[Record] = []
        for key, _ in rejected:
            read: Key = read_key(key)
            entry = self._state.entry(read.subject or "", read.version) if read.keytype == SCHEMA else None
            restored.append((key, entry.raw if entry is not None else None))
        offset = await self._in_thread(self._topic.append, restored)
        await self._read_back(offset + len(restored) - 1)

    async def _read_back(self, offset: int) -> None:
        await asyncio.wait_for(self._following.applied(offset), _READ_BACK_SECONDS)

    async def _in_thread(self, call: Callable[..., int], *arguments: Any) -> int:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    def _fail(self, outcomes: list[tuple[_Asked, Outcome]], error: RegistryError) -> None:
        for asked, _ in outcomes:
            self._refuse(asked, error)

    @staticmethod
    def _tell(asked: _Asked, reply: Any) -> None:
        if not asked.reply.done():
            asked.reply.set_result(reply)

    @staticmethod
    def _refuse(asked: _Asked, error: RegistryError) -> None:
        if not asked.reply.done():
            asked.reply.set_exception(error)

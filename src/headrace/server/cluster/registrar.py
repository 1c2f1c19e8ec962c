"""Keeps this broker registered: one ephemeral node under /brokers/ids that says where it is and how it stands.

Owns the registration and its epoch. Only one live broker can hold an id; a broker that restarts replaces its earlier registration.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from headrace.clock import Clock
from headrace.server.cluster.registration import Registration
from headrace.server.cluster.store import ConflictError, Create, Delete, Op, SetData, Store
from headrace.wire.errors import ErrorCode, KafkaError


class Registrar:
    def __init__(self, store: Store, registration: Registration, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.registration = registration
        self.epoch = -1
        """The epoch of the present registration; -1 before the first."""

    async def register(self, patience: float) -> None:
        """Create this broker's node. Another broker with the same id has `patience` seconds to go."""
        path, directory = self.registration.path, self.registration.directory
        deadline = self._clock.monotonic() + patience
        while True:
            gone = asyncio.Event()
            found = await self._store.get(path, gone.set)
            registration = self.registration  # It may have changed during the wait.
            ops: list[Op] = [Create(path, registration.encode(), ephemeral=True)]
            if found is not None:
                data, stat = found
                if Registration.decode(registration.broker_id, data).directory != directory:
                    await self._wait_for_other(gone, deadline)
                    continue
                # This process holds the lock on the data, so the node is left over from an earlier process.
                ops.insert(0, Delete(path, stat.version))
            try:
                results = await self._store.commit(ops)
            except ConflictError:
                continue  # The other registration changed or went; look again.
            created = results[-1]
            assert created is not None
            self.epoch = created.created
            if registration is not self.registration:  # It changed during the commit.
                with contextlib.suppress(ConflictError):
                    await self._write()
            return

    async def _wait_for_other(self, gone: asyncio.Event, deadline: float) -> None:
        try:
            await self._clock.wait_for(gone.wait(), max(0.0, deadline - self._clock.monotonic()))
        except TimeoutError:
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"Another broker is registered as broker {self.registration.broker_id}; "
                "give this one another node.id.",
            ) from None

    def before_another_start(self) -> None:
        """The start begins again. If this broker did register, its data belongs to that registration, not to an earlier one."""
        if self.epoch >= 0:
            self.registration = replace(self.registration, previous_epoch=self.epoch)

    def session_lost(self) -> None:
        """The next registration is that of a broker that never stopped."""
        self.registration = self.registration.after_lost_session()

    async def report_stopping(self) -> None:
        """Ask the controller to move leadership away."""
        self.registration = replace(self.registration, stopping=True)
        await self._write()

    async def report_disk_full(self, full: bool) -> None:
        """Ask the controller to let others lead while the disk is full."""
        self.registration = replace(self.registration, disk_full=full)
        # Without a node there is no session, and the next registration reports it.
        with contextlib.suppress(ConflictError):
            await self._write()

    async def report_cordoned(self, cordoned: bool) -> None:
        """Ask the controller to place no new replicas here, or to place them again."""
        self.registration = replace(self.registration, cordoned=cordoned)
        with contextlib.suppress(ConflictError):
            await self._write()

    async def _write(self) -> None:
        await self._store.commit([SetData(self.registration.path, self.registration.encode())])

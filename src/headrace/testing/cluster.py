"""A real cluster on this machine: several brokers in threads or processes, the store served to them over a socket."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from headrace.clock import SystemClock
from headrace.server.cluster.embedded import EmbeddedStore
from headrace.server.cluster.store_server import StoreServer
from headrace.testing.broker import BrokerThread
from headrace.testing.clock import MovableClock
from headrace.testing.process import BrokerProcess
from headrace.testing.topics import create_topic, unique_name


class StoreThread:
    """The embedded store behind a socket, in a thread of its own; start it again after `halt()` to find the same facts."""

    def __init__(self, session_timeout: float = 2.0) -> None:
        # A socket's path must be short, and a test's own directory seldom is.
        self._directory = tempfile.mkdtemp(prefix="headrace-store-")
        self.socket = Path(self._directory) / "store"
        self._session_timeout = session_timeout
        self._thread: threading.Thread | None = None

    def start(self) -> StoreThread:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def halt(self) -> None:
        """No broker reaches it until the next start; does nothing when it has ended already."""
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def stop(self) -> None:
        self.halt()
        shutil.rmtree(self._directory, ignore_errors=True)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        store = await EmbeddedStore.open(Path(self._directory) / "facts")
        server = StoreServer(store, self.socket, self._session_timeout, SystemClock())
        await server.start()
        self._ready.set()
        await self._stop.wait()
        await server.stop()
        await store.close()


class Broker(Protocol):
    @property
    def bootstrap(self) -> str: ...

    def start(self) -> object: ...

    def stop(self) -> object: ...

    def kill(self) -> object: ...


B = TypeVar("B", bound=Broker)


class Cluster(Generic[B]):
    """Brokers 1 to N, running; index it by broker id. A broker that was killed or stopped can be started again."""

    def __init__(
        self,
        make: Callable[[Path, Mapping[str, str]], B],
        directory: Path,
        size: int,
        settings: Mapping[str, object] | None = None,
        racks: Sequence[str] = (),
        login: Mapping[str, str] | None = None,
    ) -> None:
        """`login`: a client's settings of TLS and SASL, with which topics are created."""
        self.login = dict(login or {})
        self.store = StoreThread().start()
        self._brokers: dict[int, B] = {}
        given = {name: str(value) for name, value in (settings or {}).items()}
        try:
            for number in range(1, size + 1):
                own = {"node.id": str(number), "headrace.store": str(self.store.socket), **given}
                if racks:
                    own["broker.rack"] = racks[number - 1]
                broker = make(directory / f"broker-{number}", own)
                broker.start()
                self._brokers[number] = broker
        except BaseException:
            self.stop()
            raise

    def __getitem__(self, broker_id: int) -> B:
        return self._brokers[broker_id]

    def __iter__(self) -> Iterator[B]:
        return iter(self._brokers.values())

    def __len__(self) -> int:
        return len(self._brokers)

    @property
    def bootstrap(self) -> str:
        """What clients take as `bootstrap.servers`."""
        return ",".join(broker.bootstrap for broker in self._brokers.values())

    @property
    def client(self) -> dict[str, str]:
        """A client's settings: where the brokers are, and the login."""
        return {"bootstrap.servers": self.bootstrap, **self.login}

    def create_topic(
        self,
        name: str | None = None,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> str:
        """A topic, by default with a replica on every broker, under a name of its own; returns the name."""
        name = name or unique_name()
        create_topic(self.bootstrap, name, partitions, replication_factor or len(self), config, self.login)
        return name

    def __enter__(self) -> Cluster[B]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        with ExitStack() as all_of_them:
            all_of_them.callback(self.store.stop)
            for broker in reversed(self._brokers.values()):
                all_of_them.callback(broker.stop)


def threads(
    directory: Path,
    size: int = 3,
    settings: Mapping[str, object] | None = None,
    racks: Sequence[str] = (),
    login: Mapping[str, str] | None = None,
) -> Cluster[BrokerThread]:
    """Brokers in this process, all on one clock: `cluster[1].clock` is everybody's; `racks` gives each its own."""
    return Cluster(partial(BrokerThread, clock=MovableClock()), directory, size, settings, racks, login)


def processes(
    directory: Path, size: int = 3, settings: Mapping[str, object] | None = None
) -> Cluster[BrokerProcess]:
    return Cluster(BrokerProcess, directory, size, settings)

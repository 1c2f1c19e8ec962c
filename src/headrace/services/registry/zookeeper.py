"""The ZooKeeper registry: `/dubbo/<interface>/{providers,consumers,configurators,routers}/<encoded URL>`.

Registrations are ephemeral nodes (lasting ones with `dynamic=false`). After a lost connection or session every
registration is made again and every subscription read again, so that what the ensemble holds is what we promised.
When the ensemble was away, others lost it too and providers need a moment to come back: for one session timeout
after a reconnection an empty list of providers is ignored, and calls still go to those known before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from headrace.services.addresses import is_match
from headrace.services.registry.base import (
    NotifyListener,
    Registry,
    categories_of,
    with_empty,
)
from headrace.services.registry.zk import ZooKeeperConnection
from headrace.services.url import ANY, URL, decode, encode

logger = logging.getLogger("headrace.services.registry")

DEFAULT_ROOT = "dubbo"


class ZooKeeperRegistry(Registry):
    """A registry in a ZooKeeper ensemble, laid out as Dubbo lays it out."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._root = "/" + url.get("group", DEFAULT_ROOT).strip("/")
        self._zk = ZooKeeperConnection(url, self._reconnected)
        # By subscription and category, the mark of the one watch that counts: kazoo may still fire an older one.
        self._watched: dict[tuple[URL, NotifyListener], dict[str, object]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._patient_until = 0.0

    async def start(self) -> None:
        await self._zk.start()

    @property
    def is_available(self) -> bool:
        return self._zk.is_connected

    async def close(self) -> None:
        await super().close()
        for task in list(self._tasks):
            task.cancel()
        self._watched.clear()
        await self._zk.close()

    async def do_register(self, url: URL) -> None:
        await self._zk.create(self._node(url), ephemeral=url.get_bool("dynamic", True))
        logger.info("Registered %s of %s", url.get("category", "providers"), url.interface)

    async def do_unregister(self, url: URL) -> None:
        await self._zk.delete(self._node(url))

    async def do_subscribe(self, url: URL, listener: NotifyListener) -> None:
        key = (url, listener)
        if url.interface == ANY:
            await self._watch_services(url, listener)
            return
        self._watched.setdefault(key, {})
        urls: list[URL] = []
        for category in categories_of(url):
            urls += await self._read(url, listener, category)
        await self._tell(url, listener, urls)

    async def do_unsubscribe(self, url: URL, listener: NotifyListener) -> None:
        for key in [k for k in self._watched if k[1] is listener and (k[0] == url or url.interface == ANY)]:
            del self._watched[key]

    async def lookup(self, url: URL) -> list[URL]:
        found = []
        for category in categories_of(url):
            found += _urls(await self._zk.children(f"{self._service(url)}/{category}"))
        return [each for each in found if is_match(url, each)]

    async def services(self) -> list[str]:
        names = [decode(name) for name in await self._zk.children(self._root)]
        return sorted(name for name in names if name not in ("config", "metadata"))

    # -- watching ----------------------------------------------------------------------------------------

    async def _read(self, url: URL, listener: NotifyListener, category: str) -> list[URL]:
        """Read one category and watch it, unless it is being watched."""
        path = f"{self._service(url)}/{category}"
        watches = self._watched.get((url, listener), {})
        mark = object()

        def changed() -> None:
            if watches.get(category) is mark and self._watched.get((url, listener)) is watches:
                del watches[category]
                if self._zk.is_connected:  # else `recover` reads it again
                    self._spawn(self._refresh(url, listener, category))

        if category in watches:
            return with_empty(url, category, _urls(await self._zk.children(path)))
        watches[category] = mark
        try:
            children = await self._zk.children(path, changed)
        except BaseException:
            if watches.get(category) is mark:
                del watches[category]
            raise
        return with_empty(url, category, _urls(children))

    async def _refresh(self, url: URL, listener: NotifyListener, category: str) -> None:
        if (url, listener) not in self._watched:  # unsubscribed in the meantime
            return
        try:
            urls = await self._read(url, listener, category)
        except Exception as error:
            logger.error(
                "Failed to read %s of %s, waiting for retry, cause: %s", category, url.interface, error
            )
            self._retry_later(("subscribe", url, listener), lambda: self.do_subscribe(url, listener))
            return
        await self._tell(url, listener, urls)

    async def _tell(self, url: URL, listener: NotifyListener, urls: list[URL]) -> None:
        """Notify, but hold back an empty list while providers may still be returning."""
        loop = asyncio.get_running_loop()
        patience = self._patient_until - loop.time()
        empty = [u for u in urls if u.protocol == "empty" and u.get("category") == "providers"]
        if empty and patience > 0:
            urls = [u for u in urls if u not in empty]
            loop.call_later(patience, lambda: self._spawn(self._refresh(url, listener, "providers")))
        if (url, listener) in self._watched:
            await self.notify(url, listener, urls)

    async def _watch_services(self, url: URL, listener: NotifyListener) -> None:
        """A subscription to every service: subscribe to each existing one and to each that appears."""

        def changed() -> None:
            if listener in self.subscribed.get(url, {}) and self._zk.is_connected:
                self._spawn(self._watch_services(url, listener))

        for name in await self._zk.children(self._root, changed):
            service = url.replace(path=decode(name)).add({"interface": decode(name), "check": "false"})
            if not self._watched.get((service, listener)):  # new, or its watches ended with a connection
                await self.do_subscribe(service, listener)

    def _reconnected(self) -> None:
        self._patient_until = asyncio.get_running_loop().time() + self._zk.session_seconds
        for watched in self._watched.values():
            watched.clear()
        self._spawn(self.recover())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- paths -------------------------------------------------------------------------------------------

    def _service(self, url: URL) -> str:
        return f"{self._root}/{encode(url.interface)}"

    def _node(self, url: URL) -> str:
        return f"{self._service(url)}/{url.get('category', 'providers')}/{encode(url.full)}"


def _urls(children: list[str]) -> list[URL]:
    """The URLs that node names hold; other names do not belong to Dubbo and are ignored."""
    urls = []
    for child in children:
        text = decode(child)
        if "://" in text:
            try:
                urls.append(URL.parse(text))
            except ValueError:
                logger.warning("The registry holds %r, which is not a URL", text)
    return urls

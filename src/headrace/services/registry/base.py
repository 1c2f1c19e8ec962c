"""What every registry does: remember what was asked of it, notify listeners by category, retry what failed.

A registry keeps the set of registered URLs and subscriptions, so that it can bring them back after its connection
or its session was lost. A failed operation raises where `check` asks for it, otherwise it is retried every
`retry.period` (5,000 ms) until it works.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol

from headrace.services.addresses import is_match
from headrace.services.errors import RegistryError
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.registry")

CATEGORIES = ("providers", "consumers", "routers", "configurators")
DEFAULT_RETRY_MS = 5_000


class NotifyListener(Protocol):
    """A subscriber to what a registry holds."""

    async def notify(self, urls: list[URL]) -> None:
        """All current URLs of one category; a single `empty://…` means there are none."""


_Key = tuple[str, URL, "NotifyListener | None"]


class Registry(ABC):
    """One registry, shared by all services and references that name it."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.registered: dict[URL, None] = {}
        self.subscribed: defaultdict[URL, dict[NotifyListener, None]] = defaultdict(dict)
        self._failed: dict[_Key, Callable[[], Awaitable[None]]] = {}
        self._retry_seconds = url.get_int("retry.period", DEFAULT_RETRY_MS) / 1000
        self._retrying: asyncio.Task[None] | None = None

    # -- what a kind of registry brings ------------------------------------------------------------------

    @abstractmethod
    async def start(self) -> None:
        """Connect."""

    @property
    @abstractmethod
    def is_available(self) -> bool: ...

    @abstractmethod
    async def do_register(self, url: URL) -> None: ...

    @abstractmethod
    async def do_unregister(self, url: URL) -> None: ...

    @abstractmethod
    async def do_subscribe(self, url: URL, listener: NotifyListener) -> None:
        """Tell the listener what there is, and again whenever it changes."""

    @abstractmethod
    async def do_unsubscribe(self, url: URL, listener: NotifyListener) -> None: ...

    @abstractmethod
    async def lookup(self, url: URL) -> list[URL]:
        """The URLs registered now that match `url`."""

    @abstractmethod
    async def services(self) -> list[str]:
        """The interfaces the registry knows of."""

    @property
    def retrying(self) -> int:
        """How many operations have failed and are tried again."""
        return len(self._failed)

    # -- what all registries do --------------------------------------------------------------------------

    async def register(self, url: URL) -> None:
        self.registered[url] = None
        await self._attempt("register", url, None, partial(self.do_register, url))

    async def unregister(self, url: URL) -> None:
        self.registered.pop(url, None)
        self._failed.pop(("register", url, None), None)
        await self._attempt("unregister", url, None, partial(self.do_unregister, url))

    async def subscribe(self, url: URL, listener: NotifyListener) -> None:
        self.subscribed[url][listener] = None
        await self._attempt("subscribe", url, listener, partial(self.do_subscribe, url, listener))

    async def unsubscribe(self, url: URL, listener: NotifyListener) -> None:
        self.subscribed[url].pop(listener, None)
        if not self.subscribed[url]:
            del self.subscribed[url]
        for what in ("subscribe", *(f"notify {category}" for category in CATEGORIES)):
            self._failed.pop((what, url, listener), None)
        await self._attempt("unsubscribe", url, listener, partial(self.do_unsubscribe, url, listener))

    async def notify(self, url: URL, listener: NotifyListener, urls: Iterable[URL]) -> None:
        """Hand a listener what concerns it, one category at a time."""
        by_category: defaultdict[str, list[URL]] = defaultdict(list)
        for each in urls:
            if each.protocol == "empty" or is_match(url, each):
                by_category[each.get("category", "providers")].append(each)
        for category, found in by_category.items():
            key = ("notify " + category, url, listener)
            self._failed.pop(key, None)  # older news must not come after this
            try:
                await listener.notify(found)
            except Exception:
                logger.exception("Failed to notify for subscribe %s, waiting for retry", url)
                self._retry_later(key, partial(listener.notify, found))

    async def recover(self) -> None:
        """Bring back every registration and subscription, after a lost connection or session."""
        logger.info("Recover register url %s", [str(url) for url in self.registered])
        for url in list(self.registered):
            await self._attempt("register", url, None, partial(self.do_register, url), check=False)
        for url, listeners in list(self.subscribed.items()):
            for listener in list(listeners):
                await self._attempt(
                    "subscribe",
                    url,
                    listener,
                    partial(self.do_subscribe, url, listener),
                    check=False,
                )

    async def unregister_all(self) -> None:
        """Take back every registration, so that no new call comes here."""
        for url in list(self.registered):
            try:
                await self.unregister(url)
            except RegistryError as error:
                logger.warning("%s", error)

    async def close(self) -> None:
        if self._retrying is not None:
            self._retrying.cancel()
        self._failed.clear()

    # -- trying again ------------------------------------------------------------------------------------

    async def _attempt(
        self,
        what: str,
        url: URL,
        listener: NotifyListener | None,
        action: Callable[[], Awaitable[None]],
        *,
        check: bool | None = None,
    ) -> None:
        key = (what, url, listener)
        self._failed.pop(key, None)
        try:
            await action()
        except Exception as error:
            if check is None:
                check = self.url.get_bool("check", True) and url.get_bool("check", True)
                check = check and url.protocol != "consumer"
            if check:
                raise RegistryError(
                    f"Failed to {what} {url} to registry {self.url.address}, cause: {str(error) or type(error).__name__}"
                ) from error
            logger.error(
                "Failed to %s %s, waiting for retry, cause: %s", what, url, str(error) or type(error).__name__
            )
            self._retry_later(key, action)

    def _retry_later(self, key: _Key, action: Callable[[], Awaitable[None]]) -> None:
        self._failed[key] = action
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    async def _retry(self) -> None:
        while self._failed:
            await asyncio.sleep(self._retry_seconds)
            for key, action in list(self._failed.items()):
                if self._failed.get(key) is not action:
                    continue
                try:
                    await action()
                except Exception as error:
                    logger.warning("Failed again to %s %s, cause: %s", key[0], key[1], error)
                else:
                    if self._failed.get(key) is action:  # it may have failed anew meanwhile
                        del self._failed[key]


RegistryFactory = Callable[[URL], Registry]


def categories_of(url: URL) -> list[str]:
    wanted = url.get("category", "providers")
    return list(CATEGORIES) if wanted == "*" else url.get_list("category") or ["providers"]


def with_empty(consumer: URL, category: str, urls: Iterable[URL]) -> list[URL]:
    """The URLs a subscription wants, or one `empty://…` that says there are none."""
    found = [url for url in urls if is_match(consumer, url)]
    return found or [consumer.replace(protocol="empty").add({"category": category})]

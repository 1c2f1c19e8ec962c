"""A registry for one machine: a directory of small files, no server.

`embedded://` keeps it under the user's cache; `embedded:///path` or `?directory=/path` elsewhere. Each process holds
a lock on a file of its own for as long as it lives; an entry belongs to such a session. A process that finds a
session's lock free removes its entries, so a killed provider disappears. Changes are noticed by looking four times a second.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import uuid
from pathlib import Path

from headrace.replacing import replace_file
from headrace.services.addresses import is_match
from headrace.services.config.complete import REGISTRY_SERVICE
from headrace.services.errors import RegistryError
from headrace.services.registry.base import NotifyListener, Registry, categories_of, with_empty
from headrace.services.url import ANY, URL, decode, encode

logger = logging.getLogger("headrace.services.registry")

LOOK_SECONDS = 0.25
SESSIONS = ".sessions"
LASTING = "-"


class EmbeddedRegistry(Registry):
    """A registry in a directory of this machine."""

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._directory = _directory(url)
        self._session = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._lock: int | None = None
        self._seen: dict[tuple[URL, NotifyListener], dict[str, list[URL]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        sessions = self._directory / SESSIONS
        try:
            sessions.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(sessions / self._session, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:
            raise RegistryError(
                f"the embedded registry cannot use {self._directory}: {error.strerror}; name a directory that can be "
                "written, as in embedded:///var/tmp/registry"
            ) from None

    @property
    def is_available(self) -> bool:
        return self._lock is not None

    async def close(self) -> None:
        await super().close()
        if self._looking is not None:
            self._looking.cancel()
        if self._lock is not None:
            self._remove_session(self._session)
            os.close(self._lock)
            self._lock = None

    async def do_register(self, url: URL) -> None:
        path = self._entry(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        owner = self._session if url.get_bool("dynamic", True) else LASTING
        replace_file(path, f"{owner}\n{url.full}\n", durable=False)

    async def do_unregister(self, url: URL) -> None:
        self._entry(url).unlink(missing_ok=True)

    async def do_subscribe(self, url: URL, listener: NotifyListener) -> None:
        self._seen[url, listener] = {}
        await self._look(url, listener)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._keep_looking())

    async def do_unsubscribe(self, url: URL, listener: NotifyListener) -> None:
        self._seen.pop((url, listener), None)

    async def lookup(self, url: URL) -> list[URL]:
        found = [each for category in categories_of(url) for each in self._read(url.interface, category)]
        return [each for each in found if is_match(url, each)]

    async def services(self) -> list[str]:
        return sorted(decode(p.name) for p in self._directory.iterdir() if not p.name.startswith("."))

    # -- looking -----------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for url, listener in list(self._seen):
                try:
                    await self._look(url, listener)
                except OSError as error:
                    logger.error("The registry in %s cannot be read: %s", self._directory, error.strerror)

    async def _look(self, url: URL, listener: NotifyListener) -> None:
        interfaces = await self.services() if url.interface == ANY else [url.interface]
        for interface in interfaces:
            for category in categories_of(url):
                found = self._read(interface, category)
                seen = self._seen.get((url, listener))
                place = f"{interface}/{category}"
                if seen is not None and seen.get(place) != found:
                    seen[place] = found
                    await self.notify(url, listener, with_empty(url, category, found))

    def _read(self, interface: str, category: str) -> list[URL]:
        """The entries of one category with a live session."""
        urls = []
        directory = self._directory / encode(interface) / category
        for path in sorted(directory.glob("[!.]*")) if directory.is_dir() else ():
            try:
                owner, text, *_ = path.read_text(encoding="utf-8").split("\n")
                if owner != LASTING and not self._is_alive(owner):
                    path.unlink(missing_ok=True)
                    continue
                urls.append(URL.parse(text))
            except FileNotFoundError:
                continue
            except ValueError:
                logger.warning("The registry's file %s is damaged and left alone", path)
        return urls

    def _is_alive(self, session: str) -> bool:
        if session == self._session:
            return True
        path = self._directory / SESSIONS / session
        try:
            probe = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            path.unlink(missing_ok=True)
            return False
        finally:
            os.close(probe)

    def _remove_session(self, session: str) -> None:
        for url in list(self.registered):
            self._entry(url).unlink(missing_ok=True)
        (self._directory / SESSIONS / session).unlink(missing_ok=True)

    def _entry(self, url: URL) -> Path:
        name = hashlib.sha256(url.full.encode()).hexdigest()[:32]
        return self._directory / encode(url.interface) / url.get("category", "providers") / name


def _directory(url: URL) -> Path:
    named = url.get_decoded("directory")
    if named:
        return Path(named)
    if url.path and url.path != REGISTRY_SERVICE:
        return Path("/" + url.path)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "headrace" / "services" / (url.host or "default")

"""A Redis stream as a source: its entries have ids that only grow and can be read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.connectors.base import Offset, PolledSource, Row
from headrace.connectors.errors import ConnectorError
from headrace.connectors.redis.settings import Client, connect, reachable
from headrace.connectors.settings import setting

_PAGE = 1_000


@dataclass(frozen=True)
class RedisSourceSettings:
    url: str = setting("The server.", example="redis://:${PASSWORD}@host:6379/0")
    stream: str = setting("The key of the stream.", example="events")
    snapshot: bool = setting("Begin with the entries that are there; false: only what is new.", default=True)
    max_rows: int = setting("The most entries in one batch.", default=50_000, minimum=1)


class RedisSource(PolledSource):
    delivery = "exactly once"
    summary = "A Redis stream: its entries, in order."
    Settings = RedisSourceSettings
    settings: RedisSourceSettings

    def __init__(self, name: str, settings: RedisSourceSettings) -> None:
        super().__init__(name, settings)
        self._end: str | None = None

    def check(self) -> None:
        client = self._client()
        with reachable(self.settings.url):
            kind = client.type(self.settings.stream).decode()
        if kind not in ("stream", "none"):
            raise ConnectorError(
                f"source.stream is {self.settings.stream!r}, which is a {kind} and not a stream"
            )

    def identity(self) -> dict[str, object]:
        return {"stream": self.settings.stream}

    def start(self) -> Offset:
        return {"id": "0-0" if self.settings.snapshot else self._last(self._client()) or "0-0"}

    def until_now(self) -> None:
        self._end = self._last(self._client()) or "0-0"

    def latest(self, after: Offset) -> Offset:
        client = self._client()
        end = self._end or self._last(client)
        with reachable(self.settings.url):
            if end is not None and client.xlen(self.settings.stream) > self.settings.max_rows:
                page = client.xrange(
                    self.settings.stream, f"({after['id']}", end, count=self.settings.max_rows
                )
                end = page[-1][0].decode() if page else None
        return after if end is None or _number(end) <= _number(after["id"]) else {"id": end}

    def rows(self, after: Offset, until: Offset) -> Iterator[Row]:
        client, begin = self._client(), after["id"]
        while True:
            with reachable(self.settings.url):
                page = client.xrange(self.settings.stream, f"({begin}", until["id"], count=_PAGE)
            for identity, fields in page:
                begin = identity.decode()
                texts = {name.decode(): value.decode("utf-8", "replace") for name, value in fields.items()}
                yield {"_id": begin, **texts}
            if len(page) < _PAGE:
                return

    def _client(self) -> Client:
        return connect(self.settings.url, "source")

    def _last(self, client: Client) -> str | None:
        with reachable(self.settings.url):
            newest = client.xrevrange(self.settings.stream, count=1)
        return newest[0][0].decode() if newest else None


def _number(identity: str) -> tuple[int, int]:
    milliseconds, _, sequence = identity.partition("-")
    return int(milliseconds), int(sequence or 0)

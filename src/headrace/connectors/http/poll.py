"""Polling an HTTP API: what is new by a cursor, or each new answer as a whole.

With a cursor a batch is asked for again by its borders. Without one, the answer itself is kept in Spark's checkpoint, so
that what was seen once is what is written, and an answer that did not change gives nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urljoin

from headrace.connectors.base import Offset, PolledSource, Row
from headrace.connectors.errors import ConnectorError
from headrace.connectors.http.client import header_problems, pool, request, url_problems
from headrace.connectors.settings import Seconds, setting
from headrace.connectors.topic import read_json

_PAGES = 10_000


@dataclass(frozen=True)
class PollSettings:
    url: str = setting("What to GET; it answers with JSON.", example="https://example.org/api/orders")
    headers: dict[str, str] = setting(
        "Request headers.", default={}, example={"Authorization": "Bearer ${TOKEN}"}
    )
    params: dict[str, str] = setting("Query parameters.", default={}, example={"limit": "100"})
    records: str | None = setting(
        "Where in the answer the records are, as names with dots. [the answer itself]",
        default=None,
        example="data.items",
    )
    cursor_field: str | None = setting(
        "A field of each record that only grows: a number, or a text that sorts, such as an ISO time.",
        default=None,
        example="updated_at",
    )
    cursor_param: str | None = setting(
        "The query parameter that asks for records after a cursor.", default=None, example="since"
    )
    cursor_start: str | None = setting(
        "The first cursor to ask for. [none]", default=None, example="2026-01-01T00:00:00Z"
    )
    next: str | None = setting(
        "Where in the answer the URL of the next page is.", default=None, example="paging.next"
    )
    max_bytes: int = setting("Without a cursor: the largest answer.", default=1 << 20, minimum=1)
    timeout: Seconds = setting("How long an answer may take.", default=30.0, minimum=0.1)

    def problems(self) -> Iterator[str]:
        yield from url_problems(self.url)
        yield from header_problems(self.headers)
        if (self.cursor_field is None) != (self.cursor_param is None):
            yield "cursor_field and cursor_param belong together: give both or none"
        if self.cursor_start is not None and self.cursor_field is None:
            yield "cursor_start is given without cursor_field and cursor_param"


class HttpPollSource(PolledSource):
    delivery = "exactly once"
    summary = "An HTTP API that is asked again and again: new records by a cursor, or each new answer."
    Settings = PollSettings
    settings: PollSettings

    def __init__(self, name: str, settings: PollSettings) -> None:
        super().__init__(name, settings)
        self._once = False
        self._asked = False

    def check(self) -> None:
        first = self.settings.cursor_start
        for record in self._records(first):
            if self.settings.cursor_field is not None:
                _is_after(_cursor(record, self.settings.cursor_field), first)

    def identity(self) -> dict[str, object]:
        return {"url": self.settings.url}

    def start(self) -> Offset:
        return {"cursor": self.settings.cursor_start, "answer": "", "digest": ""}

    def until_now(self) -> None:
        self._once = True

    def latest(self, after: Offset) -> Offset:
        if self._once and self._asked:
            return after
        self._asked = True
        records = self._records(after["cursor"])
        if self.settings.cursor_field is not None:
            cursors = [_cursor(record, self.settings.cursor_field) for record in records]
            newest = max((c for c in cursors if _is_after(c, after["cursor"])), default=None, key=_order)
            return after if newest is None else {**after, "cursor": newest}
        answer = json.dumps(records, ensure_ascii=False, separators=(",", ":"))
        if len(answer) > self.settings.max_bytes:
            raise ConnectorError(
                f"{self.settings.url} answered with {len(answer)} bytes, more than source.max_bytes: ask by "
                "cursor_field and cursor_param, or raise it"
            )
        digest = hashlib.sha256(answer.encode()).hexdigest()
        return after if digest == after["digest"] else {**after, "answer": answer, "digest": digest}

    def rows(self, after: Offset, until: Offset) -> Iterator[Row]:
        if self.settings.cursor_field is None:
            yield from json.loads(until["answer"])
            return
        for record in self._records(after["cursor"]):
            cursor = _cursor(record, self.settings.cursor_field)
            if _is_after(cursor, after["cursor"]) and not _is_after(cursor, until["cursor"]):
                yield record

    def _records(self, cursor: object) -> list[dict[str, Any]]:
        settings, found = self.settings, []
        params = dict(settings.params)
        if settings.cursor_param is not None and cursor is not None:
            params[settings.cursor_param] = str(cursor)
        url = settings.url + (("&" if "?" in settings.url else "?") + urlencode(params) if params else "")
        connections = pool(settings.timeout)
        for _ in range(_PAGES):
            document = self._get(connections, url)
            found += self._in(document)
            following = _at(document, settings.next) if settings.next else None
            if not following:
                return found
            url = urljoin(url, str(following))
        raise ConnectorError(
            f"{settings.url} has more than {_PAGES} pages: does source.next lead in a circle?"
        )

    def _get(self, connections: Any, url: str) -> object:
        answer = request(connections, "GET", url, {"Accept": "application/json", **self.settings.headers})
        if answer.status != 200:
            raise ConnectorError(
                f"{self.settings.url} answered {answer.status}: check source.url and source.headers"
            )
        try:
            return read_json(answer.data)
        except ValueError as error:
            raise ConnectorError(f"{self.settings.url} did not answer with JSON: {error}") from None

    def _in(self, document: object) -> list[dict[str, Any]]:
        records = _at(document, self.settings.records) if self.settings.records else document
        listed: list[Any] = records if isinstance(records, list) else [records]
        if not all(isinstance(record, dict) for record in listed):
            raise ConnectorError(
                f"{self.settings.url} has no JSON objects at source.records ({self.settings.records or 'the answer'})"
            )
        return listed


def _at(document: object, path: str) -> object:
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _cursor(record: dict[str, Any], field: str) -> int | float | str:
    value = _at(record, field)
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number and not isinstance(value, str):
        raise ConnectorError(f"a record has no number or text in {field}, which is source.cursor_field")
    assert isinstance(value, int | float | str)
    return value


def _order(cursor: int | float | str) -> tuple[int, float, str]:
    return (0, cursor, "") if isinstance(cursor, int | float) else (1, 0, cursor)


def _number(start: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(start)
        except ValueError:
            continue
    raise ConnectorError(
        f"source.cursor_start is {start!r}, but source.cursor_field has numbers: give it a number, or leave it out"
    )


def _is_after(cursor: int | float | str, other: object) -> bool:
    if other is None:
        return True
    if isinstance(cursor, int | float) and isinstance(other, str):
        other = _number(other)  # cursor_start is text in the file
    return _order(cursor) > _order(other)  # type: ignore[arg-type]

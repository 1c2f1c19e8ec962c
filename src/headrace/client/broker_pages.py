"""Pages that brokers serve over HTTP beside Kafka's protocol: /clients and /metrics, on `headrace.metrics.listener`.

Which broker serves them where is in its settings. Apache Kafka has no such setting: there no addresses are found, and callers do
without.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from headrace.client.administration import configs
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.link.addresses import join_address, split_address

SETTING = "headrace.metrics.listener"
_SECONDS = 10.0
_EVERYWHERE = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is served; `broker` is None for an address that a user named."""

    broker: int | None
    host: str
    port: int

    def __str__(self) -> str:
        return join_address(self.host, self.port)

    @property
    def named(self) -> str:
        return str(self) if self.broker is None else f"broker {self.broker} at {self}"


class PageError(Exception):
    """A page that could not be had; the message says where and why."""


def find(session: Session) -> list[Place]:
    """Where the live brokers serve their pages, by their settings."""
    found = []
    for node in session.nodes:
        try:
            settings = configs.describe(session, "broker", [str(node.id)])[str(node.id)]
        except BrokerError:
            continue  # It may not be asked, or has just died: its page is missing, and the others are shown.
        value = next((each.value for each in settings if each.name == SETTING), None)
        if value:
            place = parse(value)
            host = node.host if place.host in _EVERYWHERE else place.host
            found.append(Place(node.id, host, place.port))
    return found


def parse(text: str) -> Place:
    """ValueError unless it is HOST:PORT."""
    host, port = split_address(text)
    if not port:
        raise ValueError(f"'{text}' is not HOST:PORT")
    return Place(None, host, port)


def get(place: Place, path: str) -> bytes:
    connection = http.client.HTTPConnection(place.host or "127.0.0.1", place.port, timeout=_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise PageError(f"{place.named} does not answer: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise PageError(
            f"{place.named} answers {answer.status} for {path}: {body.decode(errors='replace').strip()}"
        )
    return body


def get_all(places: Sequence[Place], path: str) -> tuple[dict[Place, bytes], list[PageError]]:
    """The same page of all brokers at once, and what went wrong."""
    if not places:
        return {}, []
    pages: dict[Place, bytes] = {}
    errors: list[PageError] = []
    with ThreadPoolExecutor(min(len(places), 16)) as threads:
        asked = {place: threads.submit(get, place, path) for place in places}
    for place, future in asked.items():
        try:
            pages[place] = future.result()
        except PageError as error:
            errors.append(error)
    return pages, errors


def clients(
    places: Sequence[Place], wanted: str | None = None
) -> tuple[list[Mapping[str, Any]], list[PageError]]:
    """What each broker says about its clients, with the metrics of the one that is wanted, and what went wrong."""
    told, errors = _documents(
        places, "/clients" if wanted is None else f"/clients?id={quote(wanted, safe='')}"
    )
    found: dict[int, Mapping[str, Any]] = {}
    for place, document in told.items():
        broker = document["broker"]
        if place.broker is not None and broker != place.broker:
            # A loopback address of another machine.
            errors.append(
                PageError(f"{place.named} cannot be reached from here: broker {broker} answers there")
            )
        else:
            found[broker] = document
    return [found[broker] for broker in sorted(found)], errors


def identified(places: Sequence[Place]) -> list[Place]:
    """With the broker that answers at each address that a user named; one that does not answer stays as it is."""
    told, _ = _documents([place for place in places if place.broker is None], "/clients")
    return [replace(place, broker=told[place]["broker"]) if place in told else place for place in places]


def _documents(places: Sequence[Place], path: str) -> tuple[dict[Place, Mapping[str, Any]], list[PageError]]:
    """The JSON objects of brokers, each with its number as `broker`, and what went wrong."""
    pages, errors = get_all(places, path)
    found: dict[Place, Mapping[str, Any]] = {}
    for place, page in pages.items():
        try:
            document = json.loads(page)
            found[place] = {**document, "broker": int(document["broker"])}
        except (ValueError, KeyError, TypeError):
            errors.append(PageError(f"{place.named} serves something else at /clients"))
    return found, errors

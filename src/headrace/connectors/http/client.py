"""The HTTP client of poll and webhook: one pool, timeouts, and answers classified by what to do next."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

import urllib3
from urllib3.util import Timeout, parse_url

from headrace.connectors.errors import Unavailable, one_line

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def url_problems(url: str) -> Iterator[str]:
    """What is wrong with ``url``, beginning with the setting's name."""
    try:
        parsed = parse_url(url)
    except urllib3.exceptions.LocationParseError:
        yield f"url is {url!r}, which is no URL"
        return
    if parsed.scheme not in ("http", "https"):
        yield f"url is {url!r}: it must begin with http:// or https://"
    elif not parsed.host:
        yield f"url is {url!r}: it names no host"


def header_problems(headers: Mapping[str, str]) -> Iterator[str]:
    """What HTTP cannot send as a header, beginning with the setting's name."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield f"headers has {name!r}, which is no header's name"
        elif not value.isprintable() or any(character > "\xff" for character in value):
            yield f"headers.{name} holds a line end or a character that HTTP cannot send"


def check_listens(url: str, timeout: float) -> None:
    """Whether anybody takes connections at a URL's address; nothing is sent."""
    parsed = parse_url(url)
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    try:
        socket.create_connection(((parsed.host or "").strip("[]"), port), min(timeout, 10)).close()
    except OSError as error:
        raise Unavailable(f"{_host(url)} does not answer: {one_line(error)}") from None


def pool(timeout: float) -> urllib3.PoolManager:
    return urllib3.PoolManager(timeout=Timeout(connect=min(timeout, 10), read=timeout), retries=False)


def request(
    pool: urllib3.PoolManager, method: str, url: str, headers: dict[str, str], body: bytes | None = None
) -> urllib3.BaseHTTPResponse:
    """An answer that will not change by asking again; Unavailable for one that may."""
    try:
        answer = pool.request(method, url, headers=headers, body=body, redirect=method == "GET")
    except urllib3.exceptions.HTTPError as error:
        raise Unavailable(f"{_host(url)} does not answer: {one_line(error)}") from error
    if answer.status in (408, 425, 429) or answer.status >= 500:
        raise Unavailable(f"{_host(url)} answers {answer.status}", _wait(answer.headers.get("Retry-After")))
    return answer


def _wait(text: str | None) -> float | None:
    """Retry-After, as seconds or as a date."""
    if text is None:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        from datetime import UTC, datetime

        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def _host(url: str) -> str:
    """Without path and query, which may hold secrets."""
    return url.split("?")[0].split("://")[-1].split("/")[0].rpartition("@")[2]

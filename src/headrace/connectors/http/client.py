"""The HTTP client of poll and webhook: one pool, timeouts, and answers told apart by what to do next."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import urllib3
from urllib3.util import Timeout

from headrace.connectors.errors import Unavailable


def pool(timeout: float) -> urllib3.PoolManager:
    return urllib3.PoolManager(timeout=Timeout(connect=min(timeout, 10), read=timeout), retries=False)


def request(
    pool: urllib3.PoolManager, method: str, url: str, headers: dict[str, str], body: bytes | None = None
) -> urllib3.BaseHTTPResponse:
    """An answer that will not change by asking again; Unavailable for one that may."""
    try:
        answer = pool.request(method, url, headers=headers, body=body, redirect=method == "GET")
    except urllib3.exceptions.HTTPError as error:
        raise Unavailable(f"{_host(url)} does not answer: {error}") from error
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

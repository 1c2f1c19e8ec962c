"""HTTP/1.1 messages, whole: what handlers take and give, and how requests are read from bytes.

httptools finds the parts of a message, `RequestReader` puts them together: without I/O, within limits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httptools

DEFAULT_PAYLOAD = 8 * 1024 * 1024
MAX_HEAD = 65536


@dataclass(slots=True)
class HttpRequest:
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    remote_address: str = ""
    local_address: str = ""
    keep_alive: bool = True


@dataclass(slots=True)
class HttpResponse:
    """One answer; JSON unless its headers say otherwise."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a request cannot be read. Nothing after it can be read, since it is unknown where the next request begins."""

    status: int
    message: str


class RequestReader:
    """Assembles whole requests from the bytes of one connection, in order."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._parser = httptools.HttpRequestParser(self)
        self._ready: list[HttpRequest | Unreadable] = []
        self._refusal: Unreadable | None = None
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._in_head = False
        self._late = 0  # bytes of an unfinished head, without those of the read it began in

    def feed(self, data: bytes) -> list[HttpRequest | Unreadable]:
        """The requests that are whole now. A Refusal is the last thing to be read."""
        if self._refusal is not None:
            return []
        self._ready = []
        head_began_before = self._in_head
        self._parse(data)
        self._late = self._late + len(data) if head_began_before and self._in_head else 0
        if self._late > MAX_HEAD:
            self._refuse(431, f"The head of the request is larger than {MAX_HEAD} bytes")
        return self._ready if self._refusal is None else [*self._ready, self._refusal]

    @property
    def awaits_continue(self) -> bool:
        """Whether the client sends its body only after `100 Continue`."""
        expected = self._headers.get("expect", "").lower() == "100-continue"
        return expected and not self._in_head and not self._size

    def _refuse(self, status: int, message: str) -> None:
        self._refusal = self._refusal or Unreadable(status, message)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as found:
            self._decline_upgrade(data[found.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(400, str(error))

    def _decline_upgrade(self, rest: bytes) -> None:
        """Stay with HTTP/1.1 where a client offers to switch, as Java's does by default (`Upgrade: h2c`).

        The parser assumes that the switch takes place and skips the body, so a new one reads the request again.
        """
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse(405, "CONNECT is not served here")
            return
        headers = [f"{name}: {value}" for name, value in self._headers.items() if name != "upgrade"]
        head = "\r\n".join([f" HTTP/{self._parser.get_http_version()}", *headers, "", ""])
        self._parser = httptools.HttpRequestParser(self)
        self._parse(method + b" " + self._url + head.encode("latin-1") + rest)

    # -- the parser's callbacks --------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._in_head = True
        self._late = 0
        self._url = b""
        self._headers = {}
        self._body = []
        self._size = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._in_head = False
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refuse(505, f"HTTP/{version} is not served here, use HTTP/1.1")
        elif version == "1.1" and "host" not in self._headers:
            self._refuse(400, "Missing mandatory Host: header")

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._max_body:
            self._refuse(413, f"Data length too large: over {self._max_body} bytes")
        else:
            self._body.append(data)

    def on_message_complete(self) -> None:
        parser = self._parser
        if self._refusal is None and not parser.should_upgrade():
            self._ready.append(
                HttpRequest(
                    parser.get_method().decode("latin-1"),
                    self._url.decode("latin-1"),
                    self._headers,
                    b"".join(self._body),
                    keep_alive=parser.should_keep_alive(),
                )
            )
            self._headers = {}

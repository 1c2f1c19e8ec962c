"""OAUTHBEARER (RFC 7628): a token in one message; a token that is refused gets a JSON answer, and the client one byte for it."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from headrace.wire.sasl.errors import SaslError

MECHANISM = "OAUTHBEARER"
SEPARATOR = "\x01"
UNDERSTOOD = b"\x01"
"""What a client answers to an error, so that the exchange can end."""

_NAME = r"(?:[\x02-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01"
_FIRST = re.compile(rf"n,(?:a=(?P<acts_as>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_BEARER = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)")


@dataclass(frozen=True, slots=True)
class BearerMessage:
    acts_as: str
    token: str = field(repr=False)
    extensions: Mapping[str, str]


def client_message(token: str, extensions: Mapping[str, str] | None = None) -> bytes:
    pairs = {"auth": f"Bearer {token}", **(extensions or {})}
    listed = "".join(f"{key}={value}{SEPARATOR}" for key, value in pairs.items())
    return f"n,,{SEPARATOR}{listed}{SEPARATOR}".encode()


def client_exchange(token: str, extensions: Mapping[str, str] | None = None) -> Generator[bytes, bytes]:
    """Yields what to send and takes what came back."""
    answer = yield client_message(token, extensions)
    if answer:
        # The broker refuses the token; it says so once more, as an error, when the client has acknowledged it.
        yield UNDERSTOOD
        raise SaslError(f"the broker refused the token: {answer.decode(errors='replace')}")


def read_client_message(message: bytes) -> BearerMessage:
    try:
        match = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(SEPARATOR) if pair)
    bearer = _BEARER.fullmatch(pairs.pop("auth", ""))
    if bearer is None:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    if bearer["scheme"].lower() != "bearer":
        raise SaslError("Invalid scheme in OAUTHBEARER client first message")
    acts_as = (match["acts_as"] or "").replace("=2C", ",").replace("=3D", "=")
    return BearerMessage(acts_as, bearer["token"], pairs)


def error_answer(status: str) -> str:
    return json.dumps({"status": status}, separators=(",", ":"))

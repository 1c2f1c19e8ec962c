"""Tokens for OAUTHBEARER: from an identity provider with a client's id and secret (RFC 6749, 4.4), or from a file.

Asking for one waits for the network: never do it on an event loop.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field

from headrace.link.errors import BrokerUnavailable, SettingsError
from headrace.wire.sasl.logins import BearerLogin

RENEWED_AT = 0.8
"""The part of a token's life after which a new one is asked for."""
LIFE_UNLESS_TOLD = 60.0
"""Seconds that a token is used for when neither the identity provider nor the token says how long it is good."""
_LARGEST_ANSWER = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    renew_at: float


_tokens: dict[BearerLogin, _Token] = {}
_asking = threading.Lock()


def token_of(login: BearerLogin) -> str:
    """A token that is good for a while. SettingsError when there can be none, BrokerUnavailable when there is none now."""
    with _asking:
        known = _tokens.get(login)
        if known is None or time.time() >= known.renew_at:
            known = _tokens[login] = _from_file(login) if _is_file(login.endpoint) else _from_provider(login)
        return known.text


def _is_file(endpoint: str) -> bool:
    return endpoint.lower().startswith("file:")


def _from_file(login: BearerLogin) -> _Token:
    try:
        with urllib.request.urlopen(login.endpoint) as file:
            text = file.read(_LARGEST_ANSWER).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"sasl.oauthbearer.token.endpoint.url: the token in {login.endpoint} cannot be read: {error}"
        ) from None
    _check_signed(text, login)
    return _Token(text, 0.0)  # The file may have a new one at any time.


def _from_provider(login: BearerLogin) -> _Token:
    form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
    who = f"{login.client_id}:{login.client_secret}".encode()
    request = urllib.request.Request(
        login.endpoint,
        urllib.parse.urlencode(form).encode(),
        {
            "Authorization": f"Basic {base64.b64encode(who).decode()}",
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=login.timeout) as answer:
            said = json.loads(answer.read(_LARGEST_ANSWER))
    except urllib.error.HTTPError as error:
        if error.code in (400, 401, 403):
            raise SettingsError(
                f"The identity provider at {login.endpoint} refused client {login.client_id!r} (HTTP {error.code}); check its "
                "id and secret."
            ) from None
        raise BrokerUnavailable(
            f"the identity provider at {login.endpoint} answered with HTTP {error.code}"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise BrokerUnavailable(
            f"the identity provider at {login.endpoint} gave no token: {reason}"
        ) from None
    text = said.get("access_token") if isinstance(said, dict) else None
    if not isinstance(text, str):
        raise BrokerUnavailable(f"the identity provider at {login.endpoint} answered without an access_token")
    _check_signed(text, login)
    now = time.time()
    life = _seconds(said.get("expires_in")) or _seconds(_part(text, 1).get("exp"), now) or LIFE_UNLESS_TOLD
    return _Token(text, now + life * RENEWED_AT)


def _seconds(value: object, since: float = 0.0) -> float | None:
    """A time after `since`, as seconds from then; some providers write numbers as text."""
    try:
        seconds = float(value) - since if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 and math.isfinite(seconds) else None


def _part(token: str, number: int) -> dict[str, object]:
    """The header (0) or the claims (1) of a JWT; empty for a token of another kind."""
    text = [*token.split("."), ""][number]
    try:
        said = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return said if isinstance(said, dict) else {}


def _check_signed(token: str, login: BearerLogin) -> None:
    """An unsigned JWT proves nothing, and sending one would teach others to take it."""
    if str(_part(token, 0).get("alg", "")).lower() == "none":
        raise SettingsError(
            f"The token from {login.endpoint} is not signed (its algorithm is none); have the identity provider sign it."
        )

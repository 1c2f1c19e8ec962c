"""A webhook: one POST for each notice, signed if there is a secret. The URL and the headers may be secrets: messages never show them."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import time
import urllib.error
import urllib.request
from typing import Any

from headrace.watch.alerts.declared import WebhookReceiver
from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.receivers import shapes
from headrace.watch.alerts.receivers.base import NotDelivered

SIGNATURE = "X-Headrace-Signature"
EPISODE = "X-Headrace-Id"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would follow with a GET, without the notice."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Webhook:
    def __init__(self, settings: WebhookReceiver) -> None:
        self._settings = settings
        self._url = shapes.address(settings.shape, settings.url)
        self._opener = urllib.request.build_opener(_NoRedirects)

    def deliver(self, notice: Notice) -> None:
        content = shapes.body(self._settings.shape, notice)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "headrace-alerts",
            EPISODE: notice.episode.encode("ascii", "backslashreplace").decode(),
            **dict(self._settings.headers),
        }
        if self._settings.secret is not None:
            headers[SIGNATURE] = signature(self._settings.secret, content, int(time.time()))
        request = urllib.request.Request(self._url, content, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._settings.timeout) as answer:
                answer.read(4096)
        except urllib.error.HTTPError as error:
            with error:
                raise NotDelivered(f"it answered {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            reason = error.reason
            timed_out = isinstance(reason, TimeoutError)
            why = (
                f"no connection within {self._settings.timeout:g} s"
                if timed_out
                else f"no connection: {reason}"
            )
            raise NotDelivered(why) from None
        except (ValueError, http.client.InvalidURL):
            # It would show the URL or a header.
            raise NotDelivered("its url or headers are not what HTTP allows") from None
        except TimeoutError:
            why = f"no answer within {self._settings.timeout:g} s"
            raise NotDelivered(why, may_have_arrived=True) from None
        except (OSError, http.client.HTTPException) as error:
            raise NotDelivered(f"no answer: {type(error).__name__}", may_have_arrived=True) from None

    def close(self) -> None:
        """Nothing to release."""


def signature(secret: str, content: bytes, at: int) -> str:
    """`t=<seconds>,v1=<hex>`: HMAC-SHA256 of "<seconds>.<body>", so that an old notice cannot be sent again later."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + content, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"

"""Blocking requests to a schema registry, this one's or Confluent's: documents in, documents out, refusals as errors."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from headrace.client.errors import ClientError

_TIMEOUT = 30.0


class RegistryError(ClientError):
    """The registry refused; `code` is Confluent's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RegistryUnreachable(ClientError):
    """Nobody answered there."""


class RegistryRest:
    """``login`` is USER:PASSWORD, or a token alone; ``authorities`` a file with the certificates to trust."""

    def __init__(self, url: str, login: str | None = None, authorities: str | None = None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RegistryUnreachable(f"{url} is no address of a registry; write http://HOST:PORT.")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 8081)
        self._base = parts.path.rstrip("/")
        self._tls = ssl.create_default_context(cafile=authorities) if parts.scheme == "https" else None
        if login is None and parts.username is not None:
            login = f"{parts.username}:{parts.password or ''}"
        self._headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if login is not None:
            basic = base64.b64encode(login.encode()).decode()
            self._headers["Authorization"] = f"Basic {basic}" if ":" in login else f"Bearer {login}"

    def ask(self, method: str, *path: object, body: object = None, **query: object) -> Any:
        """The document that answers; RegistryError when it is refused."""
        target = self._base + "".join(f"/{quote(str(part), safe='')}" for part in path)
        given = {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()
        }
        if given:
            target += f"?{urlencode(given)}"
        data = None if body is None else json.dumps(body)
        connection: http.client.HTTPConnection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=_TIMEOUT, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT)
        try:
            connection.request(method, target, data, self._headers)
            reply = connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or error
            raise RegistryUnreachable(
                f"No schema registry answers at {self.url}: {why}. Start one with 'headrace registry' or 'headrace up --registry'."
            ) from None
        finally:
            connection.close()
        try:
            document = json.loads(text) if text else None
        except ValueError:
            raise RegistryUnreachable(
                f"{self.url} is no schema registry: it does not answer with JSON."
            ) from None
        if reply.status >= 400:
            refused = document if isinstance(document, dict) else {}
            raise RegistryError(
                refused.get("error_code", reply.status), str(refused.get("message") or reply.reason)
            )
        return document

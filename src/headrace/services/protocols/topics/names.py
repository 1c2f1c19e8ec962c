"""The names both ends of headrace:// agree on: topics, the group, record headers.

A request is a record in the service's topic with the body of a dubbo:// request; its reply is a record in the topic
the request names, with the body of a dubbo:// response. Both carry the call's id as key and as header.
"""

from __future__ import annotations

import re
from pathlib import Path

from headrace.client import ConfigError
from headrace.link.properties import MalformedProperties, parse
from headrace.services.url import URL

ID = "headrace.id"
REPLY_TO = "headrace.reply-to"
STATUS = "headrace.status"

CLIENT_CONFIG = "client.config"
DEFAULT_PARTITIONS = 6
DEFAULT_TIMEOUT_MS = 30_000


def bootstrap_servers(url: URL) -> str:
    """The brokers: `bootstrap.servers` where the URL has it, else the URL's own address and its backups."""
    return url.get_decoded("bootstrap.servers") or url.backup_address(9092)


def client_settings(url: URL) -> dict[str, object]:
    """How to reach the brokers, and log in to them: with the settings in the file that `client.config` names, under Kafka's names. A
    URL itself is published and logged, so it is no place for them."""
    settings: dict[str, object] = {}
    if path := url.get_decoded(CLIENT_CONFIG):
        try:
            found = parse(Path(path).read_text("utf-8"))
        except OSError as error:
            raise ConfigError(f"{CLIENT_CONFIG}={path}: the file cannot be read: {error.strerror}.") from None
        except (MalformedProperties, UnicodeDecodeError) as error:
            raise ConfigError(f"{CLIENT_CONFIG}={path}: the file holds no settings: {error}.") from None
        settings = {name: entry.value for name, entry in found.items()}
    return settings | {"bootstrap.servers": bootstrap_servers(url)}


def _legal(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9._-]", "-", text)


def request_topic(url: URL) -> str:
    parts = ["services", url.get("group"), url.interface, url.get("version")]
    return _legal(".".join(part for part in parts if part))


def group_id(url: URL) -> str:
    """All providers of a service are one group: each request goes to one of them."""
    return request_topic(url)


def reply_topic(application: str) -> str:
    return _legal(f"services.{application}.replies")


def header(headers: object, name: str) -> str:
    """A header's text; the last one of that name counts."""
    found = ""
    for key, value in headers if isinstance(headers, tuple | list) else ():
        if key == name and isinstance(value, bytes):
            found = value.decode("utf-8", "replace")
    return found

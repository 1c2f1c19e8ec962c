"""Addresses as people write them, made whole; and which registered URL answers which subscription."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.services.url import ANY, URL, split_commas


def parse_address(address: str, defaults: Mapping[str, str]) -> URL:
    """Read one address (`host:port,host:port` or a URL), filling what it lacks from `defaults`."""
    text = address.strip()
    if "://" not in text and "?" not in text:
        first, *backups = split_commas(text)
        text = first + ("?backup=" + ",".join(backups) if backups else "")
    url = URL.parse(text)
    whole = ("protocol", "username", "password", "host", "port", "path")
    port = url.port or int(defaults.get("port") or 0) or 9090
    return URL(
        url.protocol or defaults.get("protocol") or "dubbo",
        url.host,
        port,
        url.path or defaults.get("path") or "",
        url.add_if_absent({k: v for k, v in defaults.items() if k not in whole}).parameters,
        username=url.username or defaults.get("username"),
        password=url.password or defaults.get("password"),
    )


def parse_addresses(address: str, defaults: Mapping[str, str]) -> list[URL]:
    """Several registries in one address, separated by `|` or `;`."""
    return [parse_address(part, defaults) for part in re.split(r"\s*[|;]+\s*", address.strip()) if part]


def is_match(consumer: URL, provider: URL) -> bool:
    """Whether what a provider registered answers a consumer's subscription."""
    if ANY not in (consumer.interface, provider.interface) and consumer.interface != provider.interface:
        return False
    category = provider.get("category", "providers")
    wanted = consumer.get("category", "providers")
    if ANY not in wanted and (f"-{category}" in wanted or ("-" not in wanted and category not in wanted)):
        return False
    if not provider.get_bool("enabled", True) and consumer.get("enabled") != ANY:
        return False
    group, version = consumer.get("group"), consumer.get("version")
    groups = split_commas(group)
    return (group == ANY or group == provider.get("group") or provider.get("group") in groups) and (
        version == ANY or version == provider.get("version")
    )

"""Attachments in the header `Dubbo-Attachments: key=value,…`, as Dubbo's own rest protocol sends them."""

from __future__ import annotations

from urllib.parse import quote, unquote

from headrace.services.invocation import Attachments

HEADER = "dubbo-attachments"


def parse_attachments(header: str) -> Attachments:
    pairs = (pair.partition("=") for pair in header.split(",") if "=" in pair)
    return {unquote(key.strip()): unquote(value.strip()) for key, _, value in pairs}


def write_attachments(attachments: Attachments) -> str:
    return ",".join(
        f"{quote(str(key), safe='')}={quote(str(value), safe='.:/')}" for key, value in attachments.items()
    )

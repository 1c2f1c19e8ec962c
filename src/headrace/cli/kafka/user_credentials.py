"""The part of kafka-configs.sh that is about SCRAM credentials of users."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.cli.failure import Failure

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_CREDENTIAL = re.compile(r"\[?(?:iterations=(-?[0-9]*),)?password=(.*?)\]?", re.DOTALL)


def is_credential(name: str) -> bool:
    return name in MECHANISMS


def alter(cluster: Cluster, user: str, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    """`SCRAM-SHA-256=[iterations=8192,password=…]`, and mechanisms to delete."""
    from headrace.client.administration import users

    passwords = {mechanism: _credential(mechanism, text) for mechanism, text in added.items()}
    cluster.call(users.alter, user, passwords, deleted)


def _credential(mechanism: str, text: str) -> tuple[str, int]:
    from headrace.client.administration.users import FEWEST_ITERATIONS

    match = _CREDENTIAL.fullmatch(text)
    if match is None or not match[2]:
        # The text may hold a password, so it is not shown.
        raise Failure(f"Invalid credential: {mechanism} takes [iterations=8192,password=alice-secret]")
    return match[2], int(match[1]) if match[1] else FEWEST_ITERATIONS


def describe(cluster: Cluster, user: str | None) -> None:
    """One user's, or everybody's."""
    from headrace.client.administration import users

    for name, found in cluster.call(users.credentials, None if user is None else [user]).items():
        listed = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in found.items())
        print(f"SCRAM credential configs for user-principal '{name}' are {listed}")

"""SCRAM users of the cluster: listing them, setting and removing their credentials.

The password is salted here and never sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from headrace.client.administration.errors import check
from headrace.client.administration.session import Session
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.wire.sasl.scram import FEWEST_ITERATIONS as FEWEST_ITERATIONS
from headrace.wire.sasl.scram import salted_password

NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The mechanisms as the protocol counts them."""
MECHANISMS = tuple(NUMBERS)
_SALT_BYTES = 24

Credentials = dict[str, int]
"""Iterations by mechanism."""


def credentials(session: Session, names: Sequence[str] | None = None) -> dict[str, Credentials]:
    """By user, those named or all; a user that does not exist is left out."""
    wanted = None if names is None else [UserName(name) for name in names]
    answer = session.call(DescribeUserScramCredentialsRequest(wanted))
    check(answer.error_code, answer.error_message)
    mechanisms = {number: name for name, number in NUMBERS.items()}
    found: dict[str, Credentials] = {}
    for result in answer.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result.error_code, result.error_message)
            found[result.user] = {
                mechanisms.get(info.mechanism, f"mechanism {info.mechanism}"): info.iterations
                for info in result.credential_infos
            }
    return found


def alter(
    session: Session, user: str, passwords: dict[str, tuple[str, int]], removed: Sequence[str] = ()
) -> None:
    """Set (password, iterations) by mechanism, and remove those of other mechanisms; all of it or nothing."""
    upsertions = []
    for mechanism, (password, iterations) in passwords.items():
        salt = secrets.token_bytes(_SALT_BYTES)
        # What no broker takes need not be worked out.
        salted = salted_password(mechanism, password, salt, max(1, min(iterations, 20_000)))
        upsertions.append(ScramCredentialUpsertion(user, NUMBERS[mechanism], iterations, salt, salted))
    deletions = [ScramCredentialDeletion(user, NUMBERS[mechanism]) for mechanism in removed]
    answer = session.call(AlterUserScramCredentialsRequest(deletions, upsertions))
    for result in answer.results:
        check(result.error_code, result.error_message)

"""SCRAM users of the cluster: what may be changed, and what is shown of them.

With a mechanism's first user its decoy is made (`server/security/scram.py`), which is what unknown names are judged by. It is kept
when the last user goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import ScramChanged
from headrace.server.security.scram import DECOY, new_decoy, restore, store
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResult,
)
from headrace.wire.sasl.scram import FEWEST_ITERATIONS, MOST_ITERATIONS, ScramCredential

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""By the numbers of the protocol."""

Errors = dict[str, KafkaError | None]
"""By user."""


def requested_users(request: AlterUserScramCredentialsRequest) -> list[str]:
    """Everyone the request is about, once each."""
    deleted, upserted = [each.name for each in request.deletions], [each.name for each in request.upsertions]
    return list(dict.fromkeys(deleted + upserted))


def alter_scram(image: MetadataImage, request: AlterUserScramCredentialsRequest) -> Outcome[Errors]:
    """All changes of one user, or none with the reason."""
    results: Errors = {}
    changes: list[Change] = []
    for user in requested_users(request):
        deletions = [each for each in request.deletions if each.name == user]
        upsertions = [each for each in request.upsertions if each.name == user]
        try:
            _check_once(deletions, upsertions)
            changes += [
                *(_delete(image, deletion) for deletion in deletions),
                *[_upsert(upsertion) for upsertion in upsertions],
            ]
            results[user] = None
        except KafkaError as error:
            results[user] = error
    return Outcome(results, [*missing_decoys(image.scram, changes), *changes])


def _check_once(
    deletions: Sequence[ScramCredentialDeletion], upsertions: Sequence[ScramCredentialUpsertion]
) -> None:
    mechanisms = [each.mechanism for each in deletions] + [each.mechanism for each in upsertions]
    if len(set(mechanisms)) != len(mechanisms):
        raise KafkaError(
            ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
        )


def _check_name(user: str, mechanism: int) -> str:
    if not user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    name = MECHANISMS.get(mechanism)
    if name is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return name


def _delete(image: MetadataImage, deletion: ScramCredentialDeletion) -> ScramChanged:
    mechanism = _check_name(deletion.name, deletion.mechanism)
    if (deletion.name, mechanism) not in image.scram:
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    return ScramChanged(deletion.name, mechanism, None)


def _upsert(upsertion: ScramCredentialUpsertion) -> ScramChanged:
    mechanism = _check_name(upsertion.name, upsertion.mechanism)
    if upsertion.iterations > MOST_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if upsertion.iterations < FEWEST_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    salt, salted = bytes(upsertion.salt), bytes(upsertion.salted_password)
    if not salt or not salted:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt and salted password must not be empty")
    credential = ScramCredential.of_salted(mechanism, salted, salt, upsertion.iterations)
    return ScramChanged(upsertion.name, mechanism, store(credential))


def missing_decoys(known: Mapping[tuple[str, str], object], changes: Iterable[Change]) -> list[Change]:
    """Decoys in the likeness of the first user of each mechanism."""
    decoys: dict[str, Change] = {}
    for change in changes:
        if isinstance(change, ScramChanged) and change.credential is not None:
            mechanism = change.mechanism
            if (DECOY, mechanism) not in known and mechanism not in decoys:
                decoys[mechanism] = ScramChanged(
                    DECOY, mechanism, store(new_decoy(mechanism, like=restore(change.credential)))
                )
    return list(decoys.values())


def describe_scram(
    image: MetadataImage, users: Sequence[str] | None
) -> list[DescribeUserScramCredentialsResult]:
    """The mechanisms and iterations of these users, or of all."""
    numbers = {name: number for number, name in MECHANISMS.items()}
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), stored in sorted(image.scram.items()):
        if user != DECOY:
            infos.setdefault(user, []).append(CredentialInfo(numbers[mechanism], int(stored["iterations"])))
    if not users:
        return [DescribeUserScramCredentialsResult(user, 0, None, found) for user, found in infos.items()]
    results = []
    for user in dict.fromkeys(users):
        found = infos.get(user, [])
        code, message = ErrorCode.NONE, None
        if users.count(user) > 1:
            code, found = ErrorCode.DUPLICATE_RESOURCE, []
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        elif not found:
            code = ErrorCode.RESOURCE_NOT_FOUND
            message = f"Attempt to describe a user credential that does not exist: {user}"
        results.append(DescribeUserScramCredentialsResult(user, code, message, found))
    return results

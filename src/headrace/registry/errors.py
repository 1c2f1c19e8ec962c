"""Refusals in Confluent's form: a status, a code below it, and Confluent's sentence."""

from __future__ import annotations


class RegistryError(Exception):
    """Becomes `{"error_code": …, "message": …}`."""

    def __init__(self, code: int, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status if status is not None else code // 100 if code >= 1000 else code


class InvalidSchema(Exception):
    """Why a text is no schema of its type."""


def not_found() -> RegistryError:
    return RegistryError(404, "HTTP 404 Not Found")


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(which: int | str | None = None) -> RegistryError:
    return RegistryError(40403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted",
    )


def no_compatibility(subject: str) -> RegistryError:
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: list[str]) -> RegistryError:
    return RegistryError(
        40901,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
        f"[{', '.join(details)}]",
        status=409,
    )


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(42201, reason)


def invalid_version(version: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    )


def invalid_mode(
    sentence: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
) -> RegistryError:
    return RegistryError(42204, sentence)


def not_permitted(sentence: str) -> RegistryError:
    return RegistryError(42205, sentence)


def read_only(subject: str, context: str) -> RegistryError:
    return not_permitted(f"Subject {subject} in context {context} is in read-only mode")


def reference_exists(subject: str, version: int) -> RegistryError:
    return RegistryError(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def too_large() -> RegistryError:
    return RegistryError(42209, "Register operation failed because schema is too large")


def invalid_rule_set(reason: str) -> RegistryError:
    return RegistryError(42210, reason)


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def unprocessable(sentence: str) -> RegistryError:
    """A body or parameter that cannot be read."""
    return RegistryError(422, sentence)


def store_failed(doing: str, why: object) -> RegistryError:
    return RegistryError(50001, f"{doing}: {why}")


def timed_out(doing: str) -> RegistryError:
    return RegistryError(50002, f"{doing} timed out")


def no_writer(doing: str, why: str) -> RegistryError:
    return RegistryError(50003, f"Error while forwarding {doing} request to the leader: {why}")

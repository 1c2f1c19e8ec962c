"""AlterUserScramCredentials (API key 51). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ScramCredentialDeletion(Message):
    __slots__ = ("mechanism", "name")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("mechanism", "int8", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Message):
    __slots__ = ("iterations", "mechanism", "name", "salt", "salted_password")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("mechanism", "int8", (0, ALWAYS), default=0),
        Field("iterations", "int32", (0, ALWAYS), default=0),
        Field("salt", "bytes", (0, ALWAYS), default=b""),
        Field("salted_password", "bytes", (0, ALWAYS), default=b""),
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Request["AlterUserScramCredentialsResponse"]):
    __slots__ = ("deletions", "upsertions")
    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("deletions", "struct", (0, ALWAYS), array=True, struct=ScramCredentialDeletion),
        Field("upsertions", "struct", (0, ALWAYS), array=True, struct=ScramCredentialUpsertion),
    )

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] | None = None,
        upsertions: list[ScramCredentialUpsertion] | None = None,
    ) -> None:
        self.deletions = [] if deletions is None else deletions
        self.upsertions = [] if upsertions is None else upsertions

    @classmethod
    def reply_type(cls) -> type[AlterUserScramCredentialsResponse]:
        return AlterUserScramCredentialsResponse


class AlterUserScramCredentialsResult(Message):
    __slots__ = ("error_code", "error_message", "user")
    FLEXIBLE = 0
    FIELDS = (
        Field("user", "string", (0, ALWAYS), default=""),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponse(Response):
    __slots__ = ("results", "throttle_time_ms")
    API_KEY = 51
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("results", "struct", (0, ALWAYS), array=True, struct=AlterUserScramCredentialsResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results

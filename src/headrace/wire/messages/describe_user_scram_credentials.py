"""DescribeUserScramCredentials (API key 50). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class UserName(Message):
    __slots__ = ("name",)
    FLEXIBLE = 0
    FIELDS = (Field("name", "string", (0, ALWAYS), default=""),)

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Request["DescribeUserScramCredentialsResponse"]):
    __slots__ = ("users",)
    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (Field("users", "struct", (0, ALWAYS), array=True, nullable=(0, ALWAYS), struct=UserName),)

    def __init__(
        self,
        users: list[UserName] | None = None,
    ) -> None:
        self.users = users

    @classmethod
    def reply_type(cls) -> type[DescribeUserScramCredentialsResponse]:
        return DescribeUserScramCredentialsResponse


class CredentialInfo(Message):
    __slots__ = ("iterations", "mechanism")
    FLEXIBLE = 0
    FIELDS = (
        Field("mechanism", "int8", (0, ALWAYS), default=0),
        Field("iterations", "int32", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(Message):
    __slots__ = ("credential_infos", "error_code", "error_message", "user")
    FLEXIBLE = 0
    FIELDS = (
        Field("user", "string", (0, ALWAYS), default=""),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("credential_infos", "struct", (0, ALWAYS), array=True, struct=CredentialInfo),
    )

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] | None = None,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is None else credential_infos


class DescribeUserScramCredentialsResponse(Response):
    __slots__ = ("error_code", "error_message", "results", "throttle_time_ms")
    API_KEY = 50
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("results", "struct", (0, ALWAYS), array=True, struct=DescribeUserScramCredentialsResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is None else results

"""CreateDelegationToken (API key 38). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class CreatableRenewers(Message):
    __slots__ = ("principal_name", "principal_type")
    FLEXIBLE = 2
    FIELDS = (
        Field("principal_type", "string", (1, ALWAYS), default=""),
        Field("principal_name", "string", (1, ALWAYS), default=""),
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"]):
    __slots__ = ("max_lifetime_ms", "owner_principal_name", "owner_principal_type", "renewers")
    API_KEY = 38
    VERSIONS = (1, 3)
    FLEXIBLE = 2
    FIELDS = (
        Field("owner_principal_type", "string", (3, ALWAYS), nullable=(3, ALWAYS), default=""),
        Field("owner_principal_name", "string", (3, ALWAYS), nullable=(3, ALWAYS), default=""),
        Field("renewers", "struct", (1, ALWAYS), array=True, struct=CreatableRenewers),
        Field("max_lifetime_ms", "int64", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] | None = None,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is None else renewers
        self.max_lifetime_ms = max_lifetime_ms

    @classmethod
    def reply_type(cls) -> type[CreateDelegationTokenResponse]:
        return CreateDelegationTokenResponse


class CreateDelegationTokenResponse(Response):
    __slots__ = (
        "error_code",
        "expiry_timestamp_ms",
        "hmac",
        "issue_timestamp_ms",
        "max_timestamp_ms",
        "principal_name",
        "principal_type",
        "throttle_time_ms",
        "token_id",
        "token_requester_principal_name",
        "token_requester_principal_type",
    )
    API_KEY = 38
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("principal_type", "string", (1, ALWAYS), default=""),
        Field("principal_name", "string", (1, ALWAYS), default=""),
        Field("token_requester_principal_type", "string", (3, ALWAYS), default=""),
        Field("token_requester_principal_name", "string", (3, ALWAYS), default=""),
        Field("issue_timestamp_ms", "int64", (1, ALWAYS), default=0),
        Field("expiry_timestamp_ms", "int64", (1, ALWAYS), default=0),
        Field("max_timestamp_ms", "int64", (1, ALWAYS), default=0),
        Field("token_id", "string", (1, ALWAYS), default=""),
        Field("hmac", "bytes", (1, ALWAYS), default=b""),
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms

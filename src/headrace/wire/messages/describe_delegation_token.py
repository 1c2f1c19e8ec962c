"""DescribeDelegationToken (API key 41). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DescribeDelegationTokenOwner(Message):
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


class DescribeDelegationTokenRequest(Request["DescribeDelegationTokenResponse"]):
    __slots__ = ("owners",)
    API_KEY = 41
    VERSIONS = (1, 3)
    FLEXIBLE = 2
    FIELDS = (
        Field(
            "owners",
            "struct",
            (1, ALWAYS),
            array=True,
            nullable=(1, ALWAYS),
            struct=DescribeDelegationTokenOwner,
        ),
    )

    def __init__(
        self,
        owners: list[DescribeDelegationTokenOwner] | None = None,
    ) -> None:
        self.owners = owners

    @classmethod
    def reply_type(cls) -> type[DescribeDelegationTokenResponse]:
        return DescribeDelegationTokenResponse


class DescribedDelegationTokenRenewer(Message):
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


class DescribedDelegationToken(Message):
    __slots__ = (
        "expiry_timestamp",
        "hmac",
        "issue_timestamp",
        "max_timestamp",
        "principal_name",
        "principal_type",
        "renewers",
        "token_id",
        "token_requester_principal_name",
        "token_requester_principal_type",
    )
    FLEXIBLE = 2
    FIELDS = (
        Field("principal_type", "string", (1, ALWAYS), default=""),
        Field("principal_name", "string", (1, ALWAYS), default=""),
        Field("token_requester_principal_type", "string", (3, ALWAYS), default=""),
        Field("token_requester_principal_name", "string", (3, ALWAYS), default=""),
        Field("issue_timestamp", "int64", (1, ALWAYS), default=0),
        Field("expiry_timestamp", "int64", (1, ALWAYS), default=0),
        Field("max_timestamp", "int64", (1, ALWAYS), default=0),
        Field("token_id", "string", (1, ALWAYS), default=""),
        Field("hmac", "bytes", (1, ALWAYS), default=b""),
        Field("renewers", "struct", (1, ALWAYS), array=True, struct=DescribedDelegationTokenRenewer),
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] | None = None,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is None else renewers


class DescribeDelegationTokenResponse(Response):
    __slots__ = ("error_code", "throttle_time_ms", "tokens")
    API_KEY = 41
    FLEXIBLE = 2
    FIELDS = (
        Field("error_code", "int16", (1, ALWAYS), default=0),
        Field("tokens", "struct", (1, ALWAYS), array=True, struct=DescribedDelegationToken),
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
    )

    def __init__(
        self,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] | None = None,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is None else tokens
        self.throttle_time_ms = throttle_time_ms

"""ApiVersions (API key 18). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class ApiVersionsRequest(Request["ApiVersionsResponse"]):
    __slots__ = ("client_software_name", "client_software_version", "cluster_id", "node_id")
    API_KEY = 18
    VERSIONS = (0, 5)
    FLEXIBLE = 3
    FIELDS = (
        Field("client_software_name", "string", (3, ALWAYS), default=""),
        Field("client_software_version", "string", (3, ALWAYS), default=""),
        Field("cluster_id", "string", (5, ALWAYS), nullable=(5, ALWAYS)),
        Field("node_id", "int32", (5, ALWAYS), default=-1),
    )

    def __init__(
        self,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.cluster_id = cluster_id
        self.node_id = node_id

    @classmethod
    def reply_type(cls) -> type[ApiVersionsResponse]:
        return ApiVersionsResponse


class ApiVersion(Message):
    __slots__ = ("api_key", "max_version", "min_version")
    FLEXIBLE = 3
    FIELDS = (
        Field("api_key", "int16", (0, ALWAYS), default=0),
        Field("min_version", "int16", (0, ALWAYS), default=0),
        Field("max_version", "int16", (0, ALWAYS), default=0),
    )

    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Message):
    __slots__ = ("max_version", "min_version", "name")
    FLEXIBLE = 3
    FIELDS = (
        Field("name", "string", (3, ALWAYS), default=""),
        Field("min_version", "int16", (3, ALWAYS), default=0),
        Field("max_version", "int16", (3, ALWAYS), default=0),
    )

    def __init__(
        self,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Message):
    __slots__ = ("max_version_level", "min_version_level", "name")
    FLEXIBLE = 3
    FIELDS = (
        Field("name", "string", (3, ALWAYS), default=""),
        Field("max_version_level", "int16", (3, ALWAYS), default=0),
        Field("min_version_level", "int16", (3, ALWAYS), default=0),
    )

    def __init__(
        self,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Response):
    __slots__ = (
        "api_keys",
        "error_code",
        "finalized_features",
        "finalized_features_epoch",
        "supported_features",
        "throttle_time_ms",
        "zk_migration_ready",
    )
    API_KEY = 18
    FLEXIBLE = 3
    FIELDS = (
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("api_keys", "struct", (0, ALWAYS), array=True, struct=ApiVersion),
        Field("throttle_time_ms", "int32", (1, ALWAYS), default=0),
        Field("supported_features", "struct", (3, ALWAYS), array=True, tag=0, struct=SupportedFeatureKey),
        Field("finalized_features_epoch", "int64", (3, ALWAYS), tag=1, default=-1),
        Field("finalized_features", "struct", (3, ALWAYS), array=True, tag=2, struct=FinalizedFeatureKey),
        Field("zk_migration_ready", "bool", (3, ALWAYS), tag=3, default=False),
    )

    def __init__(
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] | None = None,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] | None = None,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] | None = None,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is None else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is None else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is None else finalized_features
        self.zk_migration_ready = zk_migration_ready

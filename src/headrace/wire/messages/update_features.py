"""UpdateFeatures (API key 57). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class FeatureUpdateKey(Message):
    __slots__ = ("allow_downgrade", "feature", "max_version_level", "upgrade_type")
    FLEXIBLE = 0
    FIELDS = (
        Field("feature", "string", (0, ALWAYS), default=""),
        Field("max_version_level", "int16", (0, ALWAYS), default=0),
        Field("allow_downgrade", "bool", (0, 0), default=False),
        Field("upgrade_type", "int8", (1, ALWAYS), default=1),
    )

    def __init__(
        self,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"]):
    __slots__ = ("feature_updates", "timeout_ms", "validate_only")
    API_KEY = 57
    VERSIONS = (0, 2)
    FLEXIBLE = 0
    FIELDS = (
        Field("timeout_ms", "int32", (0, ALWAYS), default=60000),
        Field("feature_updates", "struct", (0, ALWAYS), array=True, struct=FeatureUpdateKey),
        Field("validate_only", "bool", (1, ALWAYS), default=False),
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is None else feature_updates
        self.validate_only = validate_only

    @classmethod
    def reply_type(cls) -> type[UpdateFeaturesResponse]:
        return UpdateFeaturesResponse


class UpdatableFeatureResult(Message):
    __slots__ = ("error_code", "error_message", "feature")
    FLEXIBLE = 0
    FIELDS = (
        Field("feature", "string", (0, ALWAYS), default=""),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
    )

    def __init__(
        self,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message


class UpdateFeaturesResponse(Response):
    __slots__ = ("error_code", "error_message", "results", "throttle_time_ms")
    API_KEY = 57
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS), default=""),
        Field("results", "struct", (0, 1), array=True, struct=UpdatableFeatureResult),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is None else results

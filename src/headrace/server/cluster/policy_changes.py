"""Changes to settings, features, access rules, quotas, credentials and delegation tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, cast

from headrace.server.cluster.image import (
    AccessRule,
    ConfigResource,
    DelegationToken,
    ImageBuilder,
    QuotaEntity,
    ResourceType,
)


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """Settings of one resource; None removes a setting."""

    TAG: ClassVar[str] = "config"
    resource: ConfigResource
    values: Mapping[str, str | None]

    def fields(self) -> list[object]:
        return [int(self.resource.type), self.resource.name, dict(self.values)]

    @classmethod
    def read(cls, resource_type: int, name: str, values: dict[str, str | None]) -> ConfigsChanged:
        return cls(ConfigResource(ResourceType(resource_type), name), values)

    def apply(self, image: ImageBuilder) -> None:
        settings = dict(image.configs.get(self.resource, {}))
        for name, value in self.values.items():
            if value is None:
                settings.pop(name, None)
            else:
                settings[name] = value
        if settings:
            image.configs[self.resource] = settings
        else:
            image.configs.pop(self.resource, None)


@dataclass(frozen=True, slots=True)
class FeatureChanged:
    """The level set for a feature; None removes the setting."""

    TAG: ClassVar[str] = "feature"
    name: str
    level: int | None

    def fields(self) -> list[object]:
        return [self.name, self.level]

    @classmethod
    def read(cls, name: str, level: int | None) -> FeatureChanged:
        return cls(name, level)

    def apply(self, image: ImageBuilder) -> None:
        if self.level is None:
            image.features.pop(self.name, None)
        else:
            image.features[self.name] = self.level


@dataclass(frozen=True, slots=True)
class AclChanged:
    """An access rule under its id; None removes it."""

    TAG: ClassVar[str] = "acl"
    acl_id: str
    rule: AccessRule | None

    def fields(self) -> list[object]:
        return [self.acl_id, None if self.rule is None else list(self.rule)]

    @classmethod
    def read(cls, acl_id: str, rule: list[object] | None) -> AclChanged:
        return cls(acl_id, None if rule is None else cast(AccessRule, tuple(rule)))

    def apply(self, image: ImageBuilder) -> None:
        if self.rule is None:
            image.acls.pop(self.acl_id, None)
        else:
            image.acls[self.acl_id] = self.rule


@dataclass(frozen=True, slots=True)
class QuotaChanged:
    """Quota values of one entity; None removes a value."""

    TAG: ClassVar[str] = "quota"
    entity: QuotaEntity
    values: Mapping[str, float | None]

    def fields(self) -> list[object]:
        return [[list(part) for part in self.entity], dict(self.values)]

    @classmethod
    def read(cls, entity: list[list[str | None]], values: dict[str, float | None]) -> QuotaChanged:
        return cls(cast(QuotaEntity, tuple((part[0], part[1]) for part in entity)), values)

    def apply(self, image: ImageBuilder) -> None:
        quotas = dict(image.quotas.get(self.entity, {}))
        for name, value in self.values.items():
            if value is None:
                quotas.pop(name, None)
            else:
                quotas[name] = value
        if quotas:
            image.quotas[self.entity] = quotas
        else:
            image.quotas.pop(self.entity, None)


@dataclass(frozen=True, slots=True)
class ScramChanged:
    """A user's SCRAM credential for one mechanism; None removes it."""

    TAG: ClassVar[str] = "scram"
    user: str
    mechanism: str
    credential: Mapping[str, str] | None = field(repr=False)

    def fields(self) -> list[object]:
        return [self.user, self.mechanism, None if self.credential is None else dict(self.credential)]

    @classmethod
    def read(cls, user: str, mechanism: str, credential: dict[str, str] | None) -> ScramChanged:
        return cls(user, mechanism, credential)

    def apply(self, image: ImageBuilder) -> None:
        if self.credential is None:
            image.scram.pop((self.user, self.mechanism), None)
        else:
            image.scram[self.user, self.mechanism] = self.credential


@dataclass(frozen=True, slots=True)
class TokenChanged:
    """A delegation token under its id; None removes it. Written only at the feature level that allows it."""

    TAG: ClassVar[str] = "token"
    token_id: str
    token: DelegationToken | None

    def fields(self) -> list[object]:
        return [self.token_id, None if self.token is None else list(self.token[1:])]

    @classmethod
    def read(cls, token_id: str, token: tuple[str, str, list[str], int, int, int] | None) -> TokenChanged:
        if token is None:
            return cls(token_id, None)
        owner, requester, renewers, *times = token
        return cls(token_id, DelegationToken(token_id, owner, requester, tuple(renewers), *times))

    def apply(self, image: ImageBuilder) -> None:
        if self.token is None:
            image.tokens.pop(self.token_id, None)
        else:
            image.tokens[self.token_id] = self.token

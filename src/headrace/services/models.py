"""What an application offers and uses, by service key: the provider and consumer models."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.services.interface import InterfaceModel
from headrace.services.url import URL


@dataclass(slots=True)
class ProviderModel:
    """One exported service, known as `group/context-path/path:version`."""

    key: str
    interface: InterfaceModel
    ref: object
    urls: list[URL] = field(default_factory=list)


@dataclass(slots=True)
class ConsumerModel:
    """One service referred to."""

    key: str
    interface: InterfaceModel
    proxy: object

"""kafka-configs.sh for users, clients and ips: their quotas, with Kafka's texts."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from headrace.cli.failure import Failure

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.quotas import Entity, Filter

TYPES = ("users", "clients", "ips")
_ENTITY = {"users": "user", "clients": "client-id", "ips": "ip"}
_CLIENT_QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
_IP_QUOTAS = ("connection_creation_rate",)
_SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}


def check_address(name: str) -> None:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        raise Failure(
            f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}"
        ) from None


def alter(
    cluster: Cluster,
    kinds: Sequence[str],
    names: Sequence[str],
    add: Mapping[str, str],
    delete: Sequence[str],
) -> None:
    """Names are in the order of the kinds; an empty one is the default."""
    from headrace.client.administration import quotas

    if len(kinds) != len(names):
        raise Failure("An entity name must be specified for every entity type")
    _check_names(kinds, [*add], "added")
    _check_names(kinds, delete, "deleted")
    found = cluster.call(quotas.describe, _filters(kinds, names), strict=True)
    held = found[0].values if found else {}
    unknown = [key for key in delete if key not in held]
    if unknown:
        raise Failure(f"Invalid config(s): {','.join(unknown)}")
    entity: Entity = tuple((_ENTITY[kind], name or None) for kind, name in zip(kinds, names, strict=True))
    cluster.call(quotas.alter, entity, {key: _number(key, value) for key, value in add.items()}, delete)


def describe(cluster: Cluster, kinds: Sequence[str], names: Sequence[str]) -> None:
    from headrace.client.administration import quotas

    if len(names) > len(kinds):
        raise Failure("More entity names specified than entity types")
    for found in cluster.call(quotas.describe, _filters(kinds, names), strict=True):
        parts = dict(found.entity)
        entity = ", ".join(
            f"the default {shown}" if parts[kind] is None else f"{shown} '{parts[kind]}'"
            for kind, shown in _SHOWN.items()
            if kind in parts
        )
        values = ", ".join(f"{key}={java_double(value)}" for key, value in found.values.items())
        print(f"Quota configs for {entity} are {values}")


def _filters(kinds: Sequence[str], names: Sequence[str]) -> list[Filter]:
    from headrace.client.administration.quotas import Filter

    return [
        Filter(_ENTITY[kind], names[place] or None)
        if place < len(names)
        else Filter(_ENTITY[kind], exact=False)
        for place, kind in enumerate(kinds)
    ]


def _check_names(kinds: Sequence[str], keys: Sequence[str], what: str) -> None:
    allowed = _IP_QUOTAS if kinds[0] == "ips" else _CLIENT_QUOTAS
    unexpected = [key for key in keys if key not in allowed]
    if unexpected:
        kind = "ips" if kinds[0] == "ips" else "clients" if "clients" in kinds else "users"
        quota = "connection quota" if kind == "ips" else "quota"
        raise Failure(
            f"Only {quota} configs can be {what} for '{kind}' using --bootstrap-server. "
            f"Unexpected config names: {','.join(unexpected)}"
        )


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise Failure(f"Cannot parse quota configuration value for {key}: {value}") from None


def java_double(value: float) -> str:
    """As Java writes it: 1024.0, but 1.0E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = (str(digit) for digit in digits)
    return f"{first}.{''.join(rest) or '0'}E{int(exponent) + len(rest)}"

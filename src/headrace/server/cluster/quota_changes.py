"""Changing client quotas: what is allowed, with Kafka's error messages, and what changes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import MetadataImage, QuotaEntity
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import QuotaChanged
from headrace.wire.errors import ErrorCode, KafkaError

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)
"""In the order in which an entity names them."""

_CLIENT_QUOTAS: Mapping[str, int | None] = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
"""The largest value of those that are whole numbers; the others may be fractions."""
_IP_QUOTAS: Mapping[str, int | None] = {"connection_creation_rate": 2**31 - 1}
_TYPE = {2**63 - 1: "a LONG", 2**31 - 1: "an INT"}


@dataclass(frozen=True, slots=True)
class Alteration:
    """What a request wants changed for one entity: (name, value) pairs, None to remove."""

    entity: Sequence[tuple[str, str | None]]
    ops: Sequence[tuple[str, float | None]]

    def __str__(self) -> str:
        """As Kafka shows the entity."""
        entries = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in self.entity)
        return f"ClientQuotaEntity(entries={{{entries}}})"


def alter_quotas(image: MetadataImage, requested: Sequence[Alteration]) -> Outcome[list[KafkaError | None]]:
    """Each entity succeeds or fails by itself; those that succeed change together."""
    results: list[KafkaError | None] = []
    changes: list[Change] = []
    seen: set[QuotaEntity] = set()
    for alteration in requested:
        try:
            entity = _entity(alteration)
            if entity in seen:
                raise _invalid(f"Ignoring duplicate entity {alteration}")
            seen.add(entity)
            wanted = _values(entity, alteration)
        except KafkaError as error:
            results.append(error)
            continue
        results.append(None)
        present = image.quotas.get(entity, {})
        changed = {name: value for name, value in wanted.items() if present.get(name) != value}
        if changed:
            changes.append(QuotaChanged(entity, changed))
    return Outcome(results, changes)


def host_names(requested: Sequence[Alteration]) -> set[str]:
    """What is given for an IP and is no address: it has to be looked up before it is accepted."""
    given = {name for each in requested for kind, name in each.entity if kind == IP and name}
    return {name for name in given if not _is_address(name)}


def unresolvable(name: str) -> KafkaError:
    return _invalid(f"{name} is not a valid IP or resolvable host.")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _entity(alteration: Alteration) -> QuotaEntity:
    parts: dict[str, str | None] = {}
    for kind, name in alteration.entity:
        if kind in parts:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {kind}")
        if kind not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
        parts[kind] = name
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    if IP in parts and len(parts) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        )
    return tuple((kind, parts[kind]) for kind in ENTITY_TYPES if kind in parts)


def _values(entity: QuotaEntity, alteration: Alteration) -> dict[str, float | None]:
    allowed = _IP_QUOTAS if entity[0][0] == IP else _CLIENT_QUOTAS
    wanted: dict[str, float | None] = {}
    for name, value in alteration.ops:
        if name in wanted:
            raise _invalid(f"Duplicate quota key {name} not updating quota for this entity {alteration}")
        if value is not None:
            _check(name, value, allowed)
        wanted[name] = value
    return wanted


def _check(name: str, value: float, allowed: Mapping[str, int | None]) -> None:
    if name not in allowed:
        raise _invalid(f"Invalid configuration key {name}")
    if not value > 0:  # neither is what is not a number
        raise _invalid(f"Quota {name} must be greater than 0")
    most = allowed[name]
    if most is None:
        return
    if value > most:
        raise _invalid(f"Proposed value for {name} is too large for {_TYPE[most]}.")
    if value % 1 > 1e-6:
        raise _invalid(f"{name} cannot be a fractional value.")

"""Client quotas of the cluster: which there are, and changing them. librdkafka has no call for either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.client.administration.errors import check
from headrace.client.administration.session import Session
from headrace.wire.messages import alter_client_quotas as alteration
from headrace.wire.messages import describe_client_quotas as description

USER, CLIENT_ID, IP = "user", "client-id", "ip"

Entity = tuple[tuple[str, str | None], ...]
"""(("user", "ada"), ("client-id", None)); None is the default."""

_EXACT, _DEFAULT, _ANY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Quotas:
    entity: Entity
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Filter:
    """Entities of one type: of this name, the default (None), or all of them if it is no `exact` filter."""

    kind: str
    name: str | None = None
    exact: bool = True

    def component(self) -> description.ComponentData:
        if not self.exact:
            return description.ComponentData(self.kind, _ANY, None)
        return description.ComponentData(self.kind, _DEFAULT if self.name is None else _EXACT, self.name)


def describe(session: Session, filters: Sequence[Filter] = (), *, strict: bool = False) -> list[Quotas]:
    """Quotas of the entities that all filters match; if strict, only of those that have no other type."""
    request = description.DescribeClientQuotasRequest([each.component() for each in filters], strict)
    answer = session.call(request)
    check(answer.error_code, answer.error_message)
    return [
        Quotas(
            tuple((part.entity_type, part.entity_name) for part in entry.entity),
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or []
    ]


def alter(
    session: Session,
    entity: Entity,
    wanted: Mapping[str, float],
    unwanted: Sequence[str] = (),
    *,
    dry_run: bool = False,
) -> None:
    """All of it or nothing. Raises Refused with the broker's reason."""
    ops = [alteration.OpData(name, value) for name, value in wanted.items()]
    ops += [alteration.OpData(name, remove=True) for name in unwanted]
    entry = alteration.EntryData([alteration.EntityData(*part) for part in entity], ops)
    answer = session.call(alteration.AlterClientQuotasRequest([entry], dry_run))
    for result in answer.entries:
        check(result.error_code, result.error_message)

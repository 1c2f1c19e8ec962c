"""Builds the chain of filters around an invoker.

Automatic filters come in their order; those named in `service.filter` or `reference.filter` follow, or stand
where the word `default` in the list puts them. `-name` removes one, `-default` all.
"""

from __future__ import annotations

from headrace.services import points
from headrace.services.filters.base import Filter
from headrace.services.invoker import Invoker

_PARAMETERS = {"provider": "service.filter", "consumer": "reference.filter"}


def build_chain(invoker: Invoker, group: str) -> Invoker:
    """Put the filters its URL asks for in front of `invoker`."""
    for filter_class in reversed(chosen_filters(invoker, group)):
        invoker = filter_class(invoker)
    return invoker


def chosen_filters(invoker: Invoker, group: str) -> list[type[Filter]]:
    """The filters, the outermost first."""
    url = invoker.url
    named = url.get_list(_PARAMETERS[group])
    automatic: list[type[Filter]] = []
    if "-default" not in named:
        for name in points.FILTERS.names():
            candidate = points.FILTERS.get(name)
            stands = group in candidate.GROUPS and candidate.is_active(url)
            if stands and name not in named and f"-{name}" not in named:
                automatic.append(candidate)
        automatic.sort(key=lambda candidate: candidate.ORDER)
    explicit = [name for name in named if not name.startswith("-")]
    split = explicit.index("default") if "default" in explicit else 0
    before = [points.FILTERS.get(name) for name in explicit[:split]]
    after = [points.FILTERS.get(name) for name in explicit[split:] if name != "default"]
    return [*before, *automatic, *after]

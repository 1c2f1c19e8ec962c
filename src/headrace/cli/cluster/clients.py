"""The clients of a command's cluster, from the brokers' own HTTP listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.failure import Failure, Misuse
from headrace.cli.view import output
from headrace.client import broker_pages
from headrace.client.connected_clients import ConnectedClient, merge

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.broker_pages import PageError, Place


def places_of(cluster: Cluster, named: str | None) -> list[Place]:
    """Those a user named, else those that the brokers' settings name; none where no broker serves them."""
    if named is None:
        return cluster.call(broker_pages.find)
    try:
        return [broker_pages.parse(each) for each in named.split(",")]
    except ValueError as error:
        raise Misuse(f"--metrics takes HOST:PORT,…, such as 127.0.0.1:9464: {error}.") from None


def connected_clients(
    cluster: Cluster, named: str | None, wanted: str | None = None
) -> list[ConnectedClient]:
    """Failure when no broker tells; brokers that do not are named on stderr."""
    places = places_of(cluster, named)
    if not places:
        raise Failure(
            "No broker says who its clients are: start the brokers with --metrics (or set "
            f"{broker_pages.SETTING}=HOST:PORT), or name their addresses with --metrics HOST:PORT,…."
        )
    documents, errors = broker_pages.clients(places, wanted)
    if not documents:
        raise Failure(f"No broker says who its clients are: {'; '.join(map(str, errors))}.")
    note(errors)
    return merge(documents)


def note(errors: list[PageError]) -> None:
    for error in errors:
        output.note(f"headrace: left out: {error}.")

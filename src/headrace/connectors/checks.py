"""Whether a connector can run: both of its sides as its file says, and its topics there or created."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.client import Admin, ClientError
from headrace.client.dead_letters import default_name
from headrace.connectors import catalogue
from headrace.connectors.base import Connector, Sink
from headrace.connectors.config import Declaration, load
from headrace.connectors.errors import ConfigError, ConnectorError, one_line
from headrace.connectors.topic import TopicIn, TopicOut, connection, schema_of
from headrace.nearest import nearest

Reach = Callable[[TopicIn | TopicOut], None]
"""Raises a ConnectorError when the cluster of a topic is away."""


def check_connector(declaration: Declaration) -> None:
    """Look whether the other side is as the file says; a ConnectorError or ClientError tells what is not."""
    connector, topic = declaration.connector, declaration.topic
    with telling(connector):
        connector.check()
        if isinstance(connector, Sink) and isinstance(topic, TopicIn):
            connector.check_schema(schema_of(topic))


def check_topics(declaration: Declaration, created: Collection[str] = ()) -> None:
    """The same for the topic's side; ``created`` are topics that sources of the same run create before it starts."""
    topic = declaration.topic
    try:
        with Admin({**connection(topic), "default.api.timeout.ms": 15_000}) as admin:
            known = list(admin.topics())
    except ClientError as error:
        raise ConnectorError(
            f"the cluster at {topic.bootstrap} (topic.bootstrap) cannot be asked: {error}"
        ) from error
    for name in topic.name if isinstance(topic, TopicIn) else ():
        if name not in known and name not in created:
            near = nearest(name, known)
            hint = f"; did you mean {near}?" if near else ""
            raise ConnectorError(
                f"topic.name is {name!r}, which {topic.bootstrap} does not have{hint or _who_creates(name)}"
            )


def _who_creates(name: str) -> str:
    return f": create it with 'headrace topics create {name}', or run the source that fills it along with this sink"


def topics_filled(topic: TopicOut) -> list[str]:
    return [topic.name] + ([default_name(topic.name)] if topic.on_error == "dead-letter" else [])


def create_topics(topic: TopicOut, read_by_others: Collection[str] = ()) -> None:
    """Create what a source fills and the cluster does not have, when its file says with how many partitions; what sinks
    of the same run read in any case, with the cluster's defaults."""
    wanted = [name for name in topics_filled(topic) if topic.partitions is not None or name in read_by_others]
    if not wanted:
        return
    with Admin(connection(topic)) as admin:
        known = admin.topics()
        for name in wanted:
            if name not in known:
                admin.create_topic(
                    name,
                    partitions=topic.partitions or -1,
                    replication_factor=-1 if topic.partitions is None else topic.replication_factor,
                    exist_ok=True,
                )


@contextmanager
def telling(connector: Connector) -> Iterator[None]:
    """Any error that a connector, perhaps a user's own, raises on the driver becomes a sentence."""
    try:
        yield
    except (ConnectorError, ClientError):
        raise
    except ImportError as error:
        raise ConnectorError(f"{connector.name} cannot run ({error}): {catalogue.remedy(error)}") from error
    except Exception as error:
        kind = type(error).__name__
        raise ConnectorError(f"{connector.name} cannot run: {kind}: {one_line(error)}") from error


def filled_by(declarations: Iterable[Declaration]) -> set[str]:
    """The topics that the sources among them write."""
    topics = [each.topic for each in declarations]
    return {name for topic in topics if isinstance(topic, TopicOut) for name in topics_filled(topic)}


def problems_of(
    file: Path,
    bootstrap: str | None = None,
    *,
    offline: bool = False,
    beside: Sequence[Path] = (),
    reach: Reach = lambda topic: None,
) -> list[str]:
    """A sentence for each mistake in a file or in what it names, without a full stop. ``beside`` are the files it would run
    with, whose sources may create what it reads; ``offline`` looks at the file only."""
    try:
        declared = load(file, bootstrap=bootstrap)
        if not offline:
            check(declared, _created_by(beside, bootstrap), reach)
    except ConfigError as error:
        return error.problems
    except (ConnectorError, ClientError) as error:
        return [str(error).rstrip(".")]
    return []


def check(declaration: Declaration, created: Collection[str], reach: Reach) -> None:
    """Look at both sides. ``reach`` comes first at the topic's, because it sees sooner that a cluster is away."""
    check_connector(declaration)
    reach(declaration.topic)
    check_topics(declaration, created)


def _created_by(files: Sequence[Path], bootstrap: str | None) -> set[str]:
    found: set[str] = set()
    for file in files:
        with suppress(ConfigError):  # reported when that file is checked itself
            found |= filled_by([load(file, bootstrap=bootstrap)])
    return found

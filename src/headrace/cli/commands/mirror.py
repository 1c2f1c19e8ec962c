"""`headrace mirror`: links that copy topics of another cluster, with the same offsets, and what becomes of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.failure import Failure, Misuse, did_you_mean
from headrace.cli.parsing import properties
from headrace.cli.view import mirrors as view
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.mirrors import MirrorLink, MirrorTopic

app = options.command_app("Mirror topics of another cluster, byte for byte, and fail over to the copy.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The link's name.")]
OnlyTopics = Annotated[
    str | None, typer.Option("--topics", metavar="TOPIC,…", help="Only these. Default: all of the link.")
]


def _listed(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def _patterns(text: str) -> list[str]:
    """`*` stands for everything, as people write it, although it is not a regular expression."""
    return [".*" if pattern == "*" else pattern for pattern in _listed(text) or []]


@app.command(
    epilog=options.examples(
        "headrace mirror create dc1 --source dc1:9092 --topics orders,payments",
        "headrace mirror create dc1 --source dc1:9092 --topics 'orders.*' --groups '.*' --throttle 20000000",
        "headrace mirror create dc1 --source dc1:9093 --topics '.*' --config dc1.properties",
    )
)
def create(
    name: Name,
    source: Annotated[
        str, typer.Option("--source", metavar="HOST:PORT,…", help="Brokers of the cluster to copy from.")
    ],
    topics: Annotated[
        str, typer.Option("--topics", metavar="PATTERN,…", help="Topic names, or regular expressions.")
    ],
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups", metavar="PATTERN,…", help="Groups whose offsets are copied, too. Default: none."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Client properties with which the brokers reach the source: TLS, SASL. Paths in it are the brokers' own.",
        ),
    ] = None,
    throttle: Annotated[
        int,
        typer.Option(
            "--throttle", metavar="BYTES", min=0, help="Bytes per second for each broker; 0 for no limit."
        ),
    ] = 0,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Make a link in this cluster; it copies from then on.

    Topics are made with the source's names, partitions and settings, and are read-only here until they are failed over. A topic
    that matches later is copied from its beginning. Internal topics are never copied. The source may be Apache Kafka.
    """
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import mirrors

    settings = properties.load(config) if config is not None else {}
    settings["bootstrap.servers"] = options.check_servers("--source", source)
    wanted = _patterns(topics)
    if not wanted:
        raise Misuse("--topics names no topic; '*' stands for all.")
    cluster = connect(bootstrap, command_config)
    cluster.call(mirrors.create, name, settings, wanted, _patterns(groups or ""), throttle)
    print(
        f"The mirror link {name} copies from {source}; 'headrace mirror status {name}' shows how far it is."
    )


@app.command("list", epilog=options.examples("headrace mirror list", "headrace mirror list --json"))
def list_(
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """List the links of this cluster, with the lag of each."""
    links = _links(_connect(bootstrap, command_config))
    if json:
        output.json_document([view.summary_document(link) for link in links])
        return
    output.table(view.SUMMARY_HEADER, [view.summary_row(link) for link in links])


@app.command(
    epilog=options.examples(
        "headrace mirror status dc1",
        "headrace mirror status dc1 --partitions",
        "headrace mirror status dc1 --json",
    )
)
def status(
    name: Name,
    partitions: Annotated[bool, typer.Option("--partitions", help="A line for every partition.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show a link: its topics, how far they are behind in records, bytes and seconds, and what is wrong.

    Bytes are estimated from the records that came last. Seconds say how long ago the copy was complete: everything that the source had
    acknowledged before is here. Passwords and keys are not shown.
    """
    link = _link(_connect(bootstrap, command_config), name)
    if json:
        output.json_document(view.document(link))
        return
    view.show(link, partitions)


@app.command(epilog=options.examples("headrace mirror pause dc1"))
def pause(
    name: Name,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Copy nothing until the link is resumed. Its topics stay read-only."""
    from headrace.client.administration import mirrors

    _connect(bootstrap, command_config).call(mirrors.pause, name)
    print(f"The mirror link {name} is paused.")


@app.command(
    epilog=options.examples(
        "headrace mirror resume dc1",
        "headrace mirror resume dc1 --topics orders",
        "headrace mirror resume dc1 --topics orders --discard",
    )
)
def resume(
    name: Name,
    topics: OnlyTopics = None,
    discard: Annotated[
        bool,
        typer.Option(
            "--discard",
            help="Of the failed topics named with --topics, throw away the records that the source does not have.",
        ),
    ] = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Let a paused link go on, and topics that had failed: they fail again unless their cause is gone.

    A topic fails when it has records that the source does not have. With --discard they are thrown away for good, and the topic
    follows the source again.
    """
    from headrace.client.administration import mirrors

    if discard and topics is None:
        raise Misuse("--discard throws records away; name the topics it is for with --topics.")
    again = _connect(bootstrap, command_config).call(mirrors.resume, name, _listed(topics), discard)
    print(f"The mirror link {name} copies.")
    for topic in again:
        print(f"{topic} is tried again.")


@app.command(
    epilog=options.examples(
        "headrace mirror failover dc1",
        "headrace mirror failover dc1 --topics orders,payments",
        "headrace mirror failover dc1 --json",
    )
)
def failover(
    name: Name,
    topics: OnlyTopics = None,
    timeout: Annotated[
        int, typer.Option("--timeout", metavar="SECONDS", min=1, help="How long to wait until it is done.")
    ] = 60,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Make the copies this cluster's own: producers may write to them.

    Copying ends, and the last copied offset of every partition is recorded; with it stands what is lost, in records and in seconds,
    as far as the source can still be asked. Transactions that were open are aborted. Without --topics the whole link is
    failed over and paused. Stop the producers at the source first: what they write there from now on does not come here.
    """
    from headrace.client.administration import mirrors

    cluster = _connect(bootstrap, command_config)
    begun = cluster.call(mirrors.fail_over, name, _listed(topics))
    deadline = time.monotonic() + timeout
    while True:
        done = {topic.name: topic for topic in _link(cluster, name).topics if topic.name in begun}
        waiting = [topic.name for topic in done.values() if topic.state != mirrors.FAILED_OVER]
        if not waiting:
            break
        if time.monotonic() > deadline:
            raise Failure(
                f"{output.count(len(waiting), 'topic')} ({', '.join(waiting[:3])}) still not failed over after {timeout} s: some of "
                "their partitions have no leader in this cluster. It goes on by itself; 'headrace mirror status' shows when it is done."
            )
        time.sleep(0.2)
    _report(list(done.values()), json)


@app.command(
    epilog=options.examples(
        "headrace mirror failback dc1 --source dc2:9092 -b dc2:9092",
        "headrace mirror failback dc1 --source dc2:9093 --config dc2.properties --to dc1:9093 --to-config admin.properties",
    )
)
def failback(
    name: Name,
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="HOST:PORT,…",
            help="Brokers of this cluster, as the first cluster's brokers reach them.",
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Client properties with which those brokers reach this cluster."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="HOST:PORT,…", help="Brokers of the first cluster. Default: the link's source."
        ),
    ] = None,
    to_config: Annotated[
        Path | None,
        typer.Option(
            "--to-config",
            metavar="FILE",
            help="Client properties for administering the first cluster. Default: --command-config.",
        ),
    ] = None,
    timeout: Annotated[
        int,
        typer.Option("--timeout", metavar="SECONDS", min=1, help="How long to wait until it has caught up."),
    ] = 60,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Let the cluster that failed follow this one, to which a link was failed over: the first step back.

    Makes a link of the same name in the first cluster, which must be Headrace. It takes over the topics there, read-only from then on,
    and copies only what they lack. A topic with records that this cluster does not have is refused and left as it is;
    'headrace mirror resume --discard' gives those records up. When it has caught up, stop the producers here and fail that
    link over: the first cluster leads again.
    """
    import re

    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import mirrors

    settings = properties.load(config) if config is not None else {}
    settings["bootstrap.servers"] = options.check_servers("--source", source)
    here = _link(connect(bootstrap, command_config), name)
    moved = [topic.name for topic in here.topics if topic.state == mirrors.FAILED_OVER]
    if not moved:
        raise Failure(f"No topic of the mirror link '{name}' is failed over, so there is nothing to go back.")
    where = options.check_servers("--to", to or here.source)
    there = connect(where, to_config or command_config)
    if any(link.name == name for link in there.call(mirrors.describe)):
        there.call(mirrors.delete, name)  # Refused while it still mirrors something.
    patterns = [re.escape(topic) for topic in moved]
    there.call(mirrors.create, name, settings, patterns, here.groups, here.throttle, True)
    print(f"The mirror link {name} at {where} follows {source}: {', '.join(moved)}.")
    _await_agreement(there, name, moved, timeout)


def _await_agreement(cluster: Cluster, name: str, wanted: list[str], timeout: int) -> None:
    """Wait until every topic has caught up or was refused; Failure names the refused ones."""
    deadline = time.monotonic() + timeout
    while True:
        link = _link(cluster, name)
        topics = {topic.name: topic for topic in link.topics}
        waiting = [topic for topic in wanted if topic not in topics or not _is_settled(topics[topic])]
        if not waiting:
            break
        if time.monotonic() > deadline:
            why = " ".join(view.problems(link)) or "It goes on by itself."
            raise Failure(f"{', '.join(waiting[:3])}: not caught up after {timeout} s. {why}")
        time.sleep(0.3)
    refused = [topics[topic] for topic in wanted if topics[topic].reason]
    for topic in refused:
        print(f"! {topic.name}: {topic.reason}")
    if refused:
        names = ",".join(topic.name for topic in refused)
        raise Failure(
            f"{output.count(len(refused), 'topic')} would have been overwritten and stay as they are. To give those records up: "
            f"headrace mirror resume {name} --topics {names} --discard"
        )
    print(f"All have caught up. To lead there again: headrace mirror failover {name}")


def _is_settled(topic: MirrorTopic) -> bool:
    if topic.reason:
        return True
    return len(topic.positions) == topic.partition_count and all(
        position.agreed and position.lag_records == 0 for position in topic.positions
    )


def _report(topics: list[MirrorTopic], json: bool) -> None:
    if json:
        output.json_document([view.topic_document(topic) for topic in topics])
        return
    if not topics:
        print("Nothing is left to fail over.")
        return
    view.show_ends(topics)


@app.command(
    "from-mirror-maker",
    epilog=options.examples(
        "headrace mirror from-mirror-maker mm2.properties", "connect-mirror-maker.sh mm2.properties"
    ),
)
def from_mirror_maker(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A properties file of MirrorMaker 2.")],
    clusters: Annotated[
        str | None,
        typer.Option("--clusters", metavar="NAME,…", help="Only the flows into these clusters."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Say which links do what a properties file of MirrorMaker 2 asks for, and what of it has no effect here.

    It changes nothing: it prints the commands. Secrets of the file are not shown.
    """
    from headrace.cli.parsing.mirror_maker import flows

    wanted = _listed(clusters)
    found = [flow for flow in flows(properties.load(file)) if wanted is None or flow.target in wanted]
    if not found:
        raise Failure(f"No flow of {file} leads into {clusters}.")
    if json:
        output.json_document([view.flow_document(flow) for flow in found])
        return
    for number, flow in enumerate(found):
        if number:
            print()
        view.show_flow(flow)


@app.command(epilog=options.examples("headrace mirror delete dc1"))
def delete(
    name: Name,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Remove a link whose topics are all failed over, and with it the record of where they ended."""
    from headrace.client.administration import mirrors

    _connect(bootstrap, command_config).call(mirrors.delete, name)
    print(f"The mirror link {name} is deleted.")


def _connect(bootstrap: str, command_config: Path | None) -> Cluster:
    from headrace.cli.cluster.connection import connect

    return connect(bootstrap, command_config)


def _links(cluster: Cluster) -> list[MirrorLink]:
    from headrace.client.administration import mirrors

    return cluster.call(mirrors.describe)


def _link(cluster: Cluster, name: str) -> MirrorLink:
    links = {link.name: link for link in _links(cluster)}
    if name not in links:
        hint = did_you_mean(name, links) or (
            f" There are: {', '.join(links)}." if links else " There are none yet."
        )
        raise Failure(f"There is no mirror link '{name}'.{hint}")
    return links[name]

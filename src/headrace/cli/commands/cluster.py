"""`headrace cluster`: what the cluster consists of, and whether it is healthy."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Exit
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.client.administration.health import Health, Replica

app = options.command_app("Describe the cluster and check its health.")

_SHOWN = 20
_LOOK_AGAIN = 0.5


@app.command(epilog=options.examples("headrace cluster describe", "headrace cluster describe --json"))
def describe(
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show the brokers, what each leads and holds, and who is the controller."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import reassignments, topics
    from headrace.client.administration.brokers import describe as describe_brokers

    cluster = connect(bootstrap, command_config)
    found = cluster.call(describe_brokers)
    described = cluster.call(topics.describe, cluster.call(topics.names, internal=True))
    partitions = [partition for topic in described for partition in topic.partitions]
    moving = cluster.call(reassignments.moves)
    held = cluster.call(reassignments.sizes, [broker.id for broker in found.brokers if broker.live])
    leads = Counter(each.leader for each in partitions)
    preferred = Counter(each.replicas[0] for each in partitions)
    replicas = Counter(broker for each in partitions for broker in each.replicas)
    in_sync = Counter(broker for each in partitions for broker in each.isr)
    size: Counter[int] = Counter()
    for (broker_id, _), amount in held.items():
        size[broker_id] += amount
    brokers: list[dict[str, Any]] = [
        {
            **asdict(broker),
            "controller": broker.id == found.controller,
            "leads": leads[broker.id],
            "preferred": preferred[broker.id],
            "replicas": replicas[broker.id],
            "in_sync": in_sync[broker.id],
            "bytes": size[broker.id] if broker.live else None,
        }
        for broker in found.brokers
    ]
    if json:
        output.json_document(
            {
                "cluster_id": found.cluster_id,
                "controller": found.controller,
                "brokers": brokers,
                "topics": len(described),
                "partitions": len(partitions),
                "moving": len(moving),
            }
        )
        return
    controller = "no controller" if found.controller is None else f"controller {found.controller}"
    print(
        f"Cluster {found.cluster_id}, {controller}, {output.count(len(described), 'topic')}, {output.count(len(partitions), 'partition')}"
    )
    rows = [
        (
            each["id"],
            f"{each['host']}:{each['port']}",
            each["rack"],
            "up" if each["live"] else "down",
            each["leads"],
            each["preferred"],
            each["replicas"],
            each["in_sync"],
            None if each["bytes"] is None else output.size(each["bytes"]),
        )
        for each in brokers
    ]
    header = ("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "SHOULD LEAD", "REPLICAS", "IN SYNC", "SIZE")
    print("\n".join(f"  {line}" for line in output.columns(header, rows)))
    if moving:
        output.note(
            f"{output.count(len(moving), 'partition')} on the move: 'headrace reassign status' shows how far."
        )


@app.command(
    epilog=options.examples(
        "headrace cluster health",
        "headrace cluster health --wait 60 && systemctl restart headrace",
        "headrace cluster health --json | jq .under_replicated",
    )
)
def health(
    wait: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="Wait up to this long for the cluster to become healthy."
        ),
    ] = 0,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show what is wrong: brokers down, partitions offline, short of replicas or led by the wrong broker.

    Exits with status 0 when the cluster is healthy, 1 when not. Partitions that a preferred leader should lead count only when more of
    a broker's are led by others than leader.imbalance.per.broker.percentage tolerates.
    """
    import time

    from headrace.cli.cluster.connection import connect
    from headrace.client.administration.health import check_health

    deadline = time.monotonic() + wait
    cluster = connect(bootstrap, command_config)
    found = cluster.call(check_health)
    while not found.sound and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)
        cluster = connect(bootstrap, command_config)
        found = cluster.call(check_health)
    if json:
        output.json_document({"healthy": found.sound, **asdict(found)})
    else:
        _show(found)
    if not found.sound:
        raise SystemExit(Exit.FAILED)


def _show(health: Health) -> None:
    rows = [
        (
            "controller",
            "none" if health.controller is None else f"broker {health.controller}",
            health.controller is None,
        ),
        ("brokers down", output.ids(health.dead), bool(health.dead)),
        ("partitions offline", len(health.offline), bool(health.offline)),
        ("under min.insync.replicas", len(health.under_min_isr), bool(health.under_min_isr)),
        ("under-replicated", len(health.under_replicated), bool(health.under_replicated)),
        ("not led by the preferred leader", len(health.leader_skewed), bool(health.skewed_brokers)),
        ("on the move", health.moving, False),
    ]
    state = "healthy" if health.sound else "NOT healthy"
    print(f"The cluster is {state}: {output.count(health.partitions, 'partition')}")
    lines = output.columns(
        ("CHECK", "FOUND", ""), [(name, str(value), "!" if bad else "") for name, value, bad in rows]
    )
    print("\n".join(f"  {line}" for line in lines))
    for title, partitions in (
        ("Offline", health.offline),
        ("Under min.insync.replicas", health.under_min_isr),
        ("Under-replicated", health.under_replicated),
        ("Not led by the preferred leader", health.leader_skewed if health.skewed_brokers else []),
    ):
        _list(title, partitions)
    if health.skewed_brokers:
        output.note("Leadership returns by itself in a while, or at once with 'headrace elect-leaders'.")


def _list(title: str, partitions: list[Replica]) -> None:
    if not partitions:
        return
    print(f"\n{title}:")
    rows = [
        (
            each.topic,
            each.partition,
            each.leader,
            output.ids(each.replicas),
            output.ids(each.isr),
            each.min_isr,
        )
        for each in partitions[:_SHOWN]
    ]
    header = ("TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "MIN ISR")
    print("\n".join(f"  {line}" for line in output.columns(header, rows)))
    if len(partitions) > _SHOWN:
        print(f"  … and {len(partitions) - _SHOWN} more; --json shows all")

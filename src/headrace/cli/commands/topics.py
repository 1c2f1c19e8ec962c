"""`headrace topics`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.commands import adopt
from headrace.cli.failure import Failure, Misuse, did_you_mean
from headrace.cli.parsing import properties
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.topics import Topic
    from headrace.client.errors import BrokerError

app = options.command_app("Create, list, describe, alter and delete topics.")

adopt.add_to(app)

Config = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="KEY=VALUE", help="A topic setting; may be repeated."),
]


@app.command(
    epilog=options.examples(
        "headrace topics create orders --partitions 6",
        "headrace topics create audit --config retention.ms=-1 --config cleanup.policy=compact",
    )
)
def create(
    topics: options.Topics,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, max=2**31 - 1, help="Default: the cluster's.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", min=1, max=32767, help="Default: the cluster's."),
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="1:2,2:3", help="Brokers by partition, instead of the two options above."),
    ] = None,
    config: Config = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that is there is no error.")
    ] = False,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Check the request, create nothing.")
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Create one topic or several."""
    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise Misuse("--replica-assignment already says how many partitions and replicas there are.")
    settings = properties.from_arguments(config or [], "--config")

    from headrace.cli.cluster.connection import connect
    from headrace.cli.parsing.assignment_file import replica_assignment as replica_assignment_of
    from headrace.client.administration import topics as admin

    assignment = replica_assignment_of(replica_assignment) if replica_assignment is not None else None
    refusals = connect(bootstrap, command_config).call(
        admin.create,
        topics,
        partitions=partitions,
        replication_factor=replication_factor,
        assignment=assignment,
        config=settings,
        validate_only=validate_only,
    )
    already_there = {topic for topic, refused in refusals.items() if if_not_exists and _exists(refused)}
    created = [topic for topic in topics if topic not in refusals]
    if json:
        output.json_document({"created": created, "existing": sorted(already_there)})
    else:
        verb = "Would create" if validate_only else "Created"
        for topic in created:
            print(f"{verb} topic {topic}.")
    _name_unknown_setting(refusals, settings)
    _fail_on({topic: refused for topic, refused in refusals.items() if topic not in already_there})


@app.command(
    "list", epilog=options.examples("headrace topics list", "headrace topics list --json | jq -r '.[].topic'")
)
def list_(
    internal: Annotated[
        bool, typer.Option("--internal", help="Also the topics that Kafka and Headrace keep for themselves.")
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """List the topics with their partitions and replicas."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import topics as admin

    cluster = connect(bootstrap, command_config)
    found = cluster.call(admin.describe, _names(cluster, internal))
    rows = [(topic.name, len(topic.partitions), topic.replication_factor) for topic in found]
    if json:
        output.json_document(
            [dict(zip(("topic", "partitions", "replication_factor"), row, strict=True)) for row in rows]
        )
    elif rows:
        output.table(("TOPIC", "PARTITIONS", "REPLICAS"), rows)
    else:
        output.note("There are no topics yet; create one with 'headrace topics create NAME'.")


@app.command(
    epilog=options.examples("headrace topics describe orders", "headrace topics describe --under-replicated")
)
def describe(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC…]", autocompletion=options.complete_topic)
    ] = None,
    under_replicated: Annotated[
        bool, typer.Option("--under-replicated", help="Only partitions with replicas out of sync.")
    ] = False,
    unavailable: Annotated[
        bool, typer.Option("--unavailable", help="Only partitions without a live leader.")
    ] = False,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also the topics that Kafka and Headrace keep for themselves.")
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Show leaders, replicas, offsets and settings.

    Without names, of every topic.
    """
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import topics as admin

    cluster = connect(bootstrap, command_config)
    found = cluster.call(admin.describe, topics or _names(cluster, internal))
    live = {node.id for node in cluster.nodes}
    if under_replicated or unavailable:
        found = [_only(topic, live, under_replicated, unavailable) for topic in found]
        found = [topic for topic in found if topic.partitions]
    described = [_as_json(cluster, topic) for topic in found]
    if json:
        output.json_document(described)
        return
    for number, topic in enumerate(described):
        print(("\n" if number else "") + f"Topic {topic['topic']}, id {topic['topic_id']}")
        if topic["configs"]:
            print("  " + ", ".join(f"{key}={value}" for key, value in topic["configs"].items()))
        rows = [
            (p["id"], p["leader"], _ids(p["replicas"]), _ids(p["isr"]), p["earliest"], p["latest"])
            for p in topic["partitions"]
        ]
        header = ("PARTITION", "LEADER", "REPLICAS", "ISR", "FIRST OFFSET", "NEXT OFFSET")
        print("\n".join(f"  {line}" for line in output.columns(header, rows)))


@app.command(
    epilog=options.examples(
        "headrace topics alter orders --partitions 12",
        "headrace topics alter orders --config retention.ms=86400000",
    )
)
def alter(
    topic: options.Topic,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, max=2**31 - 1, help="The new, larger number of partitions."
        ),
    ] = None,
    config: Config = None,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Add partitions or change settings.

    `headrace configs alter` can also take settings back.
    """
    settings = properties.from_arguments(config or [], "--config")
    if partitions is None and not settings:
        raise Misuse("Nothing to alter; give --partitions or --config.")

    from headrace.cli.cluster import settings as topic_settings
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import topics as admin

    cluster = connect(bootstrap, command_config)
    before = len(cluster.call(admin.describe, [topic])[0].partitions)
    if settings:
        topic_settings.alter(cluster, "topic", topic, settings)
    if partitions is not None:
        if partitions < before:
            raise Failure(
                f"Topic '{topic}' has {before} partitions; partitions can be added but not removed."
            )
        if partitions > before:
            cluster.call(admin.add_partitions, topic, partitions)
    if json:
        output.json_document({"topic": topic, "partitions": partitions or before, "configs": settings})
        return
    if partitions is not None and partitions > before:
        print(f"Topic {topic} has {partitions} partitions now (it had {before}).")
        output.note("Keys may map to other partitions now: their order holds only among new records.")
    elif partitions is not None:
        print(f"Topic {topic} already has {before} partitions.")
    if settings:
        print(f"Altered {', '.join(settings)} of topic {topic}.")


@app.command(
    epilog=options.examples("headrace topics delete old-orders", "headrace topics delete a b c --if-exists")
)
def delete(
    topics: options.Topics,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A topic that is not there is no error.")
    ] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Delete topics with all their records."""
    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import topics as admin

    cluster = connect(bootstrap, command_config)
    refusals = cluster.call(admin.delete, topics)
    missing = [topic for topic, refused in refusals.items() if admin.is_unknown(refused)]
    deleted = [topic for topic in topics if topic not in refusals]
    if json:
        output.json_document({"deleted": deleted, "missing": missing})
    else:
        for topic in deleted:
            print(f"Deleted topic {topic}.")
    _fail_on({topic: refused for topic, refused in refusals.items() if topic not in missing})
    if missing and not if_exists:
        raise cluster.unknown_topic(missing[0])


@app.command(
    "delete-records",
    epilog=options.examples(
        "headrace topics delete-records orders --partition 0 --before 1200",
        "headrace topics delete-records orders --all",
    ),
)
def delete_records(
    topic: options.Topic,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Default: every partition.")
    ] = None,
    before: Annotated[int | None, typer.Option("--before", min=0, help="The first offset to keep.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every record there is now.")] = False,
    json: options.Json = False,
    bootstrap: options.Bootstrap = options.DEFAULT_BOOTSTRAP,
    command_config: options.CommandConfig = None,
) -> None:
    """Delete the records before an offset.

    The topic and its settings stay.
    """
    if all_ == (before is not None):
        raise Misuse("Give either --before OFFSET or --all.")

    from headrace.cli.cluster.connection import connect
    from headrace.client.administration import offsets
    from headrace.client.administration import topics as admin

    cluster = connect(bootstrap, command_config)
    there = [p.id for p in cluster.call(admin.describe, [topic])[0].partitions]
    if partition is not None and partition not in there:
        raise Failure(f"Topic '{topic}' has no partition {partition}; it has 0 to {there[-1]}.")
    chosen = there if partition is None else [partition]
    first = cluster.call(
        offsets.delete_before, {(topic, p): -1 if before is None else before for p in chosen}
    )
    for (_, number), outcome in first.items():
        if not isinstance(outcome, int):
            raise Failure(f"Partition {number} of topic '{topic}': {outcome}")
    rows = [(number, outcome) for (_, number), outcome in first.items()]
    if json:
        output.json_document([{"topic": topic, "partition": p, "earliest": offset} for p, offset in rows])
    else:
        output.table(("PARTITION", "FIRST OFFSET"), rows)


def _exists(refused: BrokerError) -> bool:
    from confluent_kafka import KafkaError

    return refused.code == KafkaError.TOPIC_ALREADY_EXISTS


def _name_unknown_setting(refusals: dict[str, BrokerError], settings: dict[str, str]) -> None:
    from confluent_kafka import KafkaError

    from headrace.server.config.retired import remark
    from headrace.server.config.topic_table import TOPIC_SETTINGS

    if any(refused.code == KafkaError.INVALID_CONFIG for refused in refusals.values()):
        for key in settings:
            if key not in TOPIC_SETTINGS:
                raise Failure(
                    remark(key) or f"Unknown topic setting '{key}'.{did_you_mean(key, TOPIC_SETTINGS)}"
                )


def _fail_on(refusals: dict[str, BrokerError]) -> None:
    if refusals:
        raise Failure(" ".join(_about(topic, str(refused)) for topic, refused in refusals.items()))


def _about(topic: str, sentence: str) -> str:
    return sentence if f"'{topic}'" in sentence else f"Topic '{topic}': {sentence}"


def _only(topic: Topic, live: set[int], under_replicated: bool, unavailable: bool) -> Topic:
    from dataclasses import replace

    kept = [
        p
        for p in topic.partitions
        if (under_replicated and len(p.isr) < len(p.replicas)) or (unavailable and p.leader not in live)
    ]
    return replace(topic, partitions=kept)


def _names(cluster: Cluster, internal: bool) -> list[str]:
    from headrace.client.administration import topics as admin

    return cluster.call(admin.names, internal=True) if internal else cluster.call(admin.users_own)


def _as_json(cluster: Cluster, topic: Topic) -> dict[str, Any]:
    from headrace.cli.cluster.connection import Refused
    from headrace.client.administration import configs, offsets
    from headrace.wire.errors import ErrorCode

    # A partition without a leader cannot report offsets.
    led = [(topic.name, p.id) for p in topic.partitions if p.leader is not None]
    first, after = cluster.call(offsets.earliest, led), cluster.call(offsets.latest, led)
    try:
        settings = cluster.call(configs.describe, "topic", [topic.name])[topic.name]
    except Refused as refused:
        # Seeing a topic is one permission, seeing its settings another.
        if refused.error != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        output.note(f"{refused.sentence} Its settings are left out.")
        settings = []
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "configs": {s.name: s.value for s in settings if s.source == "DYNAMIC_TOPIC_CONFIG"},
        "partitions": [
            {**asdict(p), "earliest": first.get((topic.name, p.id)), "latest": after.get((topic.name, p.id))}
            for p in topic.partitions
        ],
    }


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))

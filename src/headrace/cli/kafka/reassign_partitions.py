"""kafka-reassign-partitions.sh"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.log_dirs import Place
    from headrace.client.administration.names import Partition
    from headrace.client.administration.placement import Assignment

_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_NEEDS = {
    "generate": ("topics_to_move_json_file", "broker_list"),
    "execute": ("reassignment_json_file",),
    "verify": ("reassignment_json_file",),
    "cancel": ("reassignment_json_file",),
    "list": (),
}


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse(arguments)
    chosen = [action for action in _ACTIONS if getattr(options, action)]
    if len(chosen) != 1:
        known = ", ".join(f"--{action}" for action in _ACTIONS)
        parser.error(f"Command must include exactly one action: {known}")
    for needed in _NEEDS[chosen[0]]:
        if getattr(options, needed) is None:
            parser.error(f'Missing required argument "[{needed.replace("_", "-")}]"')
    try:
        from headrace.cli.cluster.connection import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        {"generate": _generate, "execute": _execute, "verify": _verify, "cancel": _cancel, "list": _list}[
            chosen[0]
        ](cluster, options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("reassign-partitions", "This tool helps to move topic partitions between replicas.")
    parser.bootstrap()
    parser.command_config()
    parser.switch("--generate", help="Propose an assignment; nothing is changed.")
    parser.switch("--execute", help="Start the reassignment of --reassignment-json-file.")
    parser.switch("--verify", help="Tell whether it is done; takes throttles off when all moves are.")
    parser.switch("--cancel", help="Cancel an active reassignment.")
    parser.switch("--list", help="List all active reassignments.")
    parser.flag("--reassignment-json-file", type=Path, metavar="FILE", help="The assignment.")
    parser.flag("--topics-to-move-json-file", type=Path, metavar="FILE", help="With --generate: the topics.")
    parser.flag("--broker-list", metavar="0,1,2", help="With --generate: where the replicas may be.")
    parser.switch("--disable-rack-aware", help="With --generate: do not look at racks.")
    parser.flag("--throttle", type=int, default=-1, metavar="BYTES", help="Bytes per second between brokers.")
    parser.switch(
        "--additional", help="With --execute: although other moves are under way; changes throttles too."
    )
    parser.switch("--preserve-throttles", help="With --verify and --cancel: leave throttles as they are.")
    parser.flag(
        "--replica-alter-log-dirs-throttle",
        type=int,
        default=-1,
        metavar="BYTES",
        help="Bytes per second between the log directories of a broker.",
    )
    parser.flag(
        "--timeout",
        type=int,
        default=10_000,
        metavar="MS",
        help="With --execute: how long to wait until every move between log directories has begun.",
    )
    return parser


def _generate(cluster: Cluster, options: Namespace) -> None:
    from headrace.cli.parsing import assignment_file
    from headrace.client.administration import topics as admin
    from headrace.client.administration.brokers import describe as describe_brokers
    from headrace.client.administration.placement import Place, TooFewBrokers, plan

    topics = assignment_file.read_topics(options.topics_to_move_json_file)
    try:
        brokers = [int(broker) for broker in options.broker_list.split(",")]
    except ValueError:
        raise Failure(f"--broker-list takes the numbers of brokers, not '{options.broker_list}'.") from None
    for what, values in (("Broker list", brokers), ("List of topics to reassign", topics)):
        twice = _twice(values)
        if twice:
            raise Failure(f"{what} contains duplicate entries: {twice}")
    current = {
        (topic.name, p.id): p.replicas
        for topic in cluster.call(admin.describe, topics)
        for p in topic.partitions
    }
    rack_aware = not options.disable_rack_aware
    known = {broker.id: broker for broker in cluster.call(describe_brokers).brokers if broker.live}
    found = [known[broker] for broker in brokers if broker in known]
    if rack_aware and len({broker.rack is None for broker in found}) > 1:
        raise Failure(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    try:
        proposed = plan(current, [Place(broker.id, broker.rack if rack_aware else None) for broker in found])
    except TooFewBrokers as error:
        raise Failure(str(error)) from None
    print(f"Current partition replica assignment\n{assignment_file.text(current)}\n")
    print(f"Proposed partition reassignment configuration\n{assignment_file.text(proposed)}")


def _execute(cluster: Cluster, options: Namespace) -> None:
    from headrace.cli.parsing import assignment_file
    from headrace.client.administration import log_dirs, reassignments, throttles
    from headrace.client.administration.topics import partition_states

    proposed = assignment_file.read(options.reassignment_json_file)
    directories = assignment_file.read_directories(options.reassignment_json_file)
    moving = cluster.call(reassignments.moves)
    if moving and not options.additional:
        raise Failure(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
            "and create a new partition assignment in addition to the existing one. The --additional flag can also "
            "be used to change the throttle by resubmitting the current reassignment."
        )
    live = {node.id for node in cluster.nodes}
    for broker in sorted({broker for replicas in proposed.values() for broker in replicas}):
        if broker not in live:
            raise Failure(f"Unknown broker id {broker}")
    current = {p.key: p.replicas for p in cluster.call(partition_states, proposed)}
    known = {place: here for place, (here, _) in cluster.call(log_dirs.found, directories).items() if here}
    print(f"Current partition replica assignment\n\n{assignment_file.text(current, known)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    if options.throttle >= 0 or options.replica_alter_log_dirs_throttle >= 0:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
            "is removed."
        )
    if options.throttle >= 0:
        cluster.call(throttles.throttle, throttles.traffic(moving, proposed, current), options.throttle)
        print(f"The inter-broker throttle limit was set to {options.throttle} B/s")
    if options.replica_alter_log_dirs_throttle >= 0:
        rate = options.replica_alter_log_dirs_throttle
        cluster.call(throttles.throttle_directories, {place[2] for place in directories}, rate)
        print(f"The replica-alter-dir throttle limit was set to {rate} B/s")
    refusals = cluster.call(reassignments.start, proposed)
    if refusals:
        lines = [f"{_name(key)}: {refused}" for key, refused in sorted(refusals.items())]
        raise Failure("Error reassigning partition(s):\n" + "\n".join(lines))
    print(f"Successfully started partition reassignment{_s(proposed)} for {_names(proposed)}")
    left = cluster.call(
        log_dirs.begin_moves,
        directories,
        options.timeout / 1000,
        lambda place, path: print(
            f"Successfully started moving log directory to {path} for replica {place[0]}-{place[1]} with broker {place[2]}"
        ),
    )
    for (topic, number, broker), refused in left.items():
        raise Failure(f"Failed to alter dir for {topic}-{number}-{broker}: {refused}")


def _verify(cluster: Cluster, options: Namespace) -> None:
    from headrace.cli.parsing import assignment_file
    from headrace.client.administration import log_dirs, reassignments
    from headrace.client.administration.topics import partition_states

    target = assignment_file.read(options.reassignment_json_file)
    moving = cluster.call(reassignments.moves)
    settled = [key for key in target if key not in moving]
    now = {p.key: p.replicas for p in cluster.call(partition_states, settled)}
    print("Status of partition reassignment:")
    for key, replicas in sorted(target.items()):
        if key in moving:
            print(f"Reassignment of partition {_name(key)} is still in progress.")
        elif now[key] == replicas:
            print(f"Reassignment of partition {_name(key)} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {_name(key)}, but replica set is "
                f"{_ids(now[key])} rather than {_ids(replicas)}."
            )
    between = assignment_file.read_directories(options.reassignment_json_file)
    still = False
    for place, (here, coming) in sorted(cluster.call(log_dirs.found, between).items()):
        if here != between[place] and coming == between[place]:
            still = True
        print(_directory_state(place, between[place], here, coming))
    print()
    if not moving and not still and not options.preserve_throttles:
        _clear_throttles(cluster, target)


def _directory_state(place: Place, wanted: str, here: str | None, coming: str | None) -> str:
    topic, number, broker = place
    if here == wanted:
        return f"Reassignment of replica {topic}-{number}-{broker} completed successfully."
    if coming == wanted:
        return f"Reassignment of replica {topic}-{number}-{broker} is still in progress."
    if coming is not None:
        return f"Partition {topic}-{number} on broker {broker} is being moved to log dir {coming} instead of {wanted}."
    if here is None:
        return (
            f"Partition {topic}-{number} is not found in any live log dir on broker {broker}. There is likely an offline log "
            "directory on the broker."
        )
    return (
        f"Partition {topic}-{number} on broker {broker} is not being moved from log dir {here} to {wanted}."
    )


def _cancel(cluster: Cluster, options: Namespace) -> None:
    from headrace.cli.parsing import assignment_file
    from headrace.client.administration import reassignments

    target = assignment_file.read(options.reassignment_json_file)
    active = [key for key in cluster.call(reassignments.moves) if key in target]
    if active:
        refusals = cluster.call(reassignments.cancel, active)
        if refusals:
            lines = [f"{_name(key)}: {refused}" for key, refused in sorted(refusals.items())]
            raise Failure(f"Error cancelling partition reassignment{_s(refusals)} for:\n" + "\n".join(lines))
        print(f"Successfully cancelled partition reassignment{_s(active)} for: {_names(active)}")
    else:
        print("None of the specified partition reassignments are active.")
    if not options.preserve_throttles:
        _clear_throttles(cluster, target)


def _list(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import reassignments

    moving = cluster.call(reassignments.moves)
    if not moving:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for key, move in moving.items():
        adding = f" adding: {_ids(move.adding)}." if move.adding else ""
        removing = f" removing: {_ids(move.removing)}." if move.removing else ""
        print(f"{_name(key)}: replicas: {_ids(move.replicas)}.{adding}{removing}")


def _clear_throttles(cluster: Cluster, target: Assignment) -> None:
    from headrace.client.administration import throttles

    brokers = {node.id for node in cluster.nodes} | {b for replicas in target.values() for b in replicas}
    topics = sorted({topic for topic, _ in target})
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_ids(sorted(brokers))}")
    cluster.call(throttles.clear_brokers, brokers)
    print(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    cluster.call(throttles.clear_topics, topics)


def _twice(values: list[Any]) -> str:
    return ",".join(sorted({str(value) for value in values if values.count(value) > 1}))


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def _names(partitions: Iterable[Partition]) -> str:
    return ",".join(map(_name, sorted(partitions)))


def _s(things: Any) -> str:
    return "" if len(things) == 1 else "s"

"""kafka-leader-election.sh"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.names import Partition


def run(arguments: list[str]) -> int:
    parser = KafkaParser(
        "leader-election", "This tool attempts to elect a new leader for a set of topic partitions."
    )
    parser.bootstrap()
    parser.command_config("--admin.config")
    parser.flag("--election-type", type=str.lower, metavar="preferred|unclean", help="Which election.")
    parser.flag("--topic", help="The topic; with --partition.")
    parser.flag("--partition", type=int, help="The partition; with --topic.")
    parser.switch("--all-topic-partitions", help="Every partition that needs it.")
    parser.flag("--path-to-json-file", type=Path, metavar="FILE", help="A file of partitions.")
    options = parser.parse(arguments)
    if options.election_type is None:
        parser.error("Missing required option(s): election-type")
    if options.election_type not in ("preferred", "unclean"):
        parser.error(f"--election-type is preferred or unclean, not '{options.election_type}'")
    given = [options.topic is not None, options.all_topic_partitions, options.path_to_json_file is not None]
    if sum(given) != 1:
        parser.error(
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"
        )
    if (options.topic is None) != (options.partition is None):
        parser.error("Missing required option(s): --topic and --partition go together")
    try:
        from headrace.cli.cluster.connection import connect

        return _elect(connect(options.bootstrap_server, options.command_config), options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED


def _elect(cluster: Cluster, options: Namespace) -> int:
    from headrace.cli.parsing import assignment_file
    from headrace.client.administration import elections

    partitions: list[Partition] | None = None
    if options.path_to_json_file is not None:
        partitions = assignment_file.read_partitions(options.path_to_json_file)
    elif options.topic is not None:
        partitions = [(options.topic, options.partition)]
    kind = elections.UNCLEAN if options.election_type == "unclean" else elections.PREFERRED
    outcomes = cluster.call(elections.elect, kind, partitions)
    word = options.election_type.upper()
    elected = [_name(key) for key, outcome in outcomes.items() if outcome is None]
    settled = [_name(key) for key, outcome in outcomes.items() if elections.not_needed(outcome)]
    failed = {
        _name(key): outcome
        for key, outcome in outcomes.items()
        if outcome is not None and not elections.not_needed(outcome)
    }
    if elected:
        print(f"Successfully completed leader election ({word}) for partitions {', '.join(elected)}")
    if settled:
        print(f"Valid replica already elected for partitions {', '.join(settled)}")
    for name, refused in failed.items():
        print(f"Error completing leader election ({word}) for partition: {name}: {refused}")
    if failed:
        print(f"{len(failed)} replica(s) could not be elected", file=sys.stderr)
    return Exit.FAILED if failed else Exit.OK


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"

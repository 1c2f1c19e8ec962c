"""kafka-groups.sh: groups of all types."""

from __future__ import annotations

import sys

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

_TYPES = ("classic", "consumer", "share", "streams")


def run(arguments: list[str]) -> int:
    parser = KafkaParser("groups", "List groups of all types.")
    parser.bootstrap()
    parser.command_config()
    parser.switch("--list", help="List the groups.")
    parser.flag("--group-type", choices=_TYPES, type=str.lower, help="Only groups of this type.")
    parser.flag("--protocol", help="Only groups with this protocol type.")
    parser.switch("--consumer", help="Only consumer groups of all kinds: also classic and simple ones.")
    parser.switch("--share", help="Only share groups.")
    parser.switch("--streams", help="Only streams groups.")
    options = parser.parse(arguments)
    if not options.list:
        parser.error("Command must include exactly one action: --list.")
    if (
        sum((options.consumer, options.share, options.streams, bool(options.group_type or options.protocol)))
        > 1
    ):
        parser.error("--consumer, --share, --streams and --group-type or --protocol exclude each other.")
    wanted = "share" if options.share else "streams" if options.streams else options.group_type
    try:
        from headrace.cli.cluster.connection import connect
        from headrace.client.administration import groups

        cluster = connect(options.bootstrap_server, options.command_config)
        found = [
            (each.group, each.type, each.protocol)
            for each in cluster.call(groups.everything)
            if (wanted is None or each.type.lower() == wanted)
            and (options.protocol is None or each.protocol == options.protocol)
            and (not options.consumer or _is_of_consumers(each.type, each.protocol))
        ]
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    if not found:
        print("No groups found." if wanted is None else f"No {wanted} groups found.")
        return Exit.OK
    width = max([20, *(len(name) for name, _, _ in found)])
    for row in [("GROUP", "TYPE", "PROTOCOL"), *sorted(found)]:
        print(f"{row[0]:<{width}} {row[1]:<20} {row[2]:<20}")
    return Exit.OK


def _is_of_consumers(kind: str, protocol: str) -> bool:
    return kind.lower() == "consumer" or (kind.lower() == "classic" and protocol in ("", "consumer"))

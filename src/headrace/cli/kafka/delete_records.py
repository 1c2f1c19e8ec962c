"""kafka-delete-records.sh"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser


def run(arguments: list[str]) -> int:
    parser = KafkaParser("delete-records", "Delete the records of partitions before given offsets.")
    parser.bootstrap()
    parser.command_config()
    parser.flag(
        "--offset-json-file",
        required=True,
        type=Path,
        metavar="FILE",
        help='{"partitions": [{"topic": "t", "partition": 0, "offset": 10}], "version": 1}; offset -1: all there is',
    )
    options = parser.parse(arguments)
    try:
        before = _read(options.offset_json_file)

        from headrace.cli.cluster.connection import connect
        from headrace.client.administration import offsets

        cluster = connect(options.bootstrap_server, options.command_config)
        print("Executing records delete operation")
        outcomes = cluster.call(offsets.delete_before, before)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    print("Records delete operation completed:")
    for (topic, partition), outcome in outcomes.items():
        if isinstance(outcome, int):
            print(f"partition: {topic}-{partition}\tlow_watermark: {outcome}")
        else:
            print(f"partition: {topic}-{partition}\terror: {outcome}")
    return Exit.OK if all(isinstance(outcome, int) for outcome in outcomes.values()) else Exit.FAILED


def _read(path: Path) -> dict[tuple[str, int], int]:
    try:
        given: Any = json.loads(path.read_text())
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise Failure("The input string is not a valid JSON") from None
    if not isinstance(given, dict) or given.get("version", 1) != 1:
        version = given.get("version") if isinstance(given, dict) else None
        raise Failure(f"Not supported version field value {version}")
    if "partitions" not in given:
        raise Failure("Missing partitions field")
    before: dict[tuple[str, int], int] = {}
    for entry in given["partitions"]:
        try:
            partition = (str(entry["topic"]), int(entry["partition"]))
            offset = int(entry["offset"])
        except (KeyError, TypeError, ValueError):
            raise Failure(
                f"Each partition has a topic, a partition and an offset; {json.dumps(entry)} has not."
            ) from None
        if partition in before:
            name = f"{partition[0]}-{partition[1]}"
            raise Failure(f"Offset json file contains duplicate topic partitions: {name}")
        before[partition] = offset
    return before

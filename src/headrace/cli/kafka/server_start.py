"""kafka-server-start.sh: `headrace up --config FILE`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from headrace.cli.failure import Exit
from headrace.cli.kafka.arguments import KafkaParser


def run(arguments: list[str]) -> int:
    parser = KafkaParser(
        "server-start", "Start a broker with the settings of a file: headrace up --config FILE."
    )
    parser.switch(
        "-daemon", help="In the background; what it says goes to $LOG_DIR/kafkaServer.out (./logs)."
    )
    parser.add_argument("properties", type=Path, metavar="server.properties", help="The broker's settings.")
    parser.flag(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="A setting that wins over the file.",
    )
    options = parser.parse(arguments)
    command = [sys.executable, "-m", "headrace.cli", "up", "--config", str(options.properties)]
    for setting in options.override:
        command += ["--set", setting]
    if not options.daemon:
        os.execv(command[0], command)
    folder = Path(os.environ.get("LOG_DIR", "logs"))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "kafkaServer.out").open("ab") as out:
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    return Exit.OK

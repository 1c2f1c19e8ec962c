"""docs/pictures/first-minutes.svg: a terminal in which the README's first commands really run.

`python tools/record_terminal.py` starts a broker on 127.0.0.1:9092 with data of its own, types the commands below into a
shell, and draws what they print. Run it again when their output changes.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "first-minutes.svg"
COMMANDS = (
    "headrace topics create visits --partitions 3",
    r"printf 'ada /home\nben /basket\ntom /home\nada /checkout\n' | headrace produce visits --key-separator ' '",
    "headrace consume visits --from-beginning --until-end --fields partition,offset,key,value",
    "headrace consume visits --group funnel --from-beginning --max 4",
    "headrace groups describe funnel --watch",
)
COLUMNS = 108


def main() -> int:
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "COLUMNS": str(COLUMNS),
        "FORCE_COLOR": "1",
    }
    terminal = Console(record=True, width=COLUMNS, file=io.StringIO())
    with tempfile.TemporaryDirectory() as data:
        broker = subprocess.Popen(
            ["headrace", "up", "--data", "data"],
            cwd=data,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert broker.stdout is not None
            ready = broker.stdout.readline().rstrip()
            if "is ready" not in ready:
                print("The broker did not start: is 127.0.0.1:9092 in use?", file=sys.stderr)
                return 1
            show(terminal, "headrace up &", ready)
            for command in COMMANDS:
                show(terminal, command, printed(command, environment))
        finally:
            broker.terminate()
            broker.wait(30)
    PICTURE.parent.mkdir(exist_ok=True)
    drawing = terminal.export_svg(title="Headrace")
    PICTURE.write_text(
        re.sub(r"@font-face \{.*?\}", "", drawing, flags=re.DOTALL)
    )  # nothing from the network
    print(f"{PICTURE.name} is made")
    return 0


def printed(command: str, environment: dict[str, str]) -> str:
    """What a command prints; one that would go on for ever is ended after its first look."""
    watching = "--watch" in command
    shell = f"timeout -s INT 3 {command}" if watching else command
    done = subprocess.run(shell, shell=True, env=environment, text=True, capture_output=True, check=False)
    if done.returncode not in ((0, 124, 130) if watching else (0,)):
        raise SystemExit(f"{command} failed: {done.stderr or done.stdout}")
    lines = done.stdout.rstrip().splitlines()
    if watching:  # the first look only
        later = next((i for i, line in enumerate(lines[1:], 1) if line.startswith("Group ")), len(lines))
        lines = lines[:later]
    return "\n".join(lines)


def show(terminal: Console, command: str, output: str) -> None:
    terminal.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    if output:
        terminal.print(Text.from_ansi(output.expandtabs(12)))
    terminal.print()


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.upgrade.make_fixture`: fill data directories with brokers of the earlier version, and keep them compressed.

One directory of a single broker and one of `headrace up --brokers 3`, both stopped cleanly, with a transaction left open.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.upgrade.contents import KEPT, Writer
from tests.upgrade.earlier import FIXTURE, earlier_headrace
from tests.upgrade.running import Up


def fill(headrace: list[str], data: Path, brokers: int) -> None:
    options = ["--brokers", str(brokers)] if brokers > 1 else []
    with Up(headrace, data, KEPT, *options) as up:

        def alter(kind: str, setting: tuple[str, str], *name: str) -> None:
            command = [*headrace, "configs", "alter", kind, *name, "--set", "=".join(setting)]
            subprocess.run([*command, "-b", up.bootstrap], check=True, stdout=subprocess.DEVNULL)

        Writer(up.bootstrap, brokers, alter).write()


def main() -> int:
    headrace = earlier_headrace()
    with tempfile.TemporaryDirectory(prefix="headrace-fixture-") as temporary:
        root = Path(temporary)
        for name, brokers in (("single", 1), ("cluster", 3)):
            print(f"filling {name}", flush=True)
            fill(headrace, root / name, brokers)
        with tarfile.open(FIXTURE, "w:xz") as archive:
            for name in ("single", "cluster"):
                archive.add(root / name, name, filter=_plain)
    print(f"{FIXTURE}: {FIXTURE.stat().st_size:,} bytes")
    return 0


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Files and directories without their owner; sockets and locks are no data."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    wanted = entry.isdir() or (entry.isfile() and Path(entry.name).name != ".lock")
    return entry if wanted else None


if __name__ == "__main__":
    sys.exit(main())

"""An earlier commit of Headrace, taken from this clone, in an environment of its own: its brokers beside today's."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

# The version whose data directories and wire formats must stay readable, both ways.
COMMIT = "f085820d27a391b7318cdc8afb4ff3c40bd94052"
SHORT = COMMIT[:7]
ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).with_name(f"{SHORT}.tar.xz")

TODAY = [sys.executable, "-m", "headrace.cli"]


class NotAvailable(AssertionError):
    """The earlier code cannot be had on this machine; the message says why."""


def _run(command: list[str], **options: object) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise NotAvailable(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")


def earlier_headrace() -> list[str]:
    """The command line of the earlier `headrace`; its environment is made on first use, below build/."""
    place = ROOT / "build" / f"headrace-{SHORT}"
    if not place.exists():
        known = subprocess.run(["git", "cat-file", "-e", COMMIT], cwd=ROOT, capture_output=True, check=False)
        if known.returncode != 0:
            raise NotAvailable(
                f"Commit {SHORT} is not in this clone, so its code cannot be tried: fetch the whole history"
                " (git fetch --unshallow)."
            )
        unfinished = place.with_name(f"{place.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        archive = unfinished / "source.tar"
        _run(["git", "archive", "-o", str(archive), COMMIT], cwd=ROOT)
        with tarfile.open(archive) as source:
            source.extractall(unfinished / "source", filter="data")
        uv = str(Path(sys.executable).with_name("uv"))
        env = {**os.environ, "UV_SYSTEM_CERTS": "1", "UV_LINK_MODE": "copy"}
        python = str(unfinished / "venv" / "bin" / "python")
        source_code = unfinished / "source"
        _run([uv, "venv", "-q", "--python", sys.executable, str(unfinished / "venv")], env=env)
        install = [uv, "pip", "install", "-q", "--python", python]
        locked = str(source_code / "requirements" / "all.lock")
        _run([*install, "-c", locked, f"{source_code}[zookeeper]"], env=env)
        unfinished.rename(place)
    return [str(place / "venv" / "bin" / "python"), "-m", "headrace.cli"]

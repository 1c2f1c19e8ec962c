"""This machine as the checks see it: the interpreter, the kernel's limits, and brokers that run here."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Interpreter:
    path: str
    version: str
    implementation: str
    profiled: bool
    """Built with profile-guided optimisation (--enable-optimizations)."""
    link_optimised: bool
    """Built with link-time optimisation (--with-lto)."""
    has_uvloop: bool

    @classmethod
    def this(cls) -> Interpreter:
        has_uvloop = importlib.util.find_spec("uvloop") is not None
        return cls.of(sysconfig.get_config_vars(), has_uvloop, uses_library="libpython" in _mapped())

    @classmethod
    def of(
        cls, variables: Mapping[str, object], has_uvloop: bool, *, uses_library: bool = True
    ) -> Interpreter:
        """`variables` are those of `sysconfig`. Debian's describe its libpython, which its own python3, built with both, does not use."""
        if variables.get("Py_ENABLE_SHARED") and not uses_library:
            variables = {"CONFIG_ARGS": "--enable-optimizations --with-lto"}
        asked = str(variables.get("CONFIG_ARGS") or "")
        flags = " ".join(str(variables.get(name) or "") for name in ("PY_CORE_CFLAGS", "PY_CFLAGS", "CFLAGS"))
        return cls(
            sys.executable,
            platform.python_version(),
            platform.python_implementation(),
            "--enable-optimizations" in asked or "-fprofile-use" in flags,
            "--with-lto" in asked or "-flto" in flags,
            has_uvloop,
        )


def _mapped() -> str:
    """The libraries of this process, as the kernel lists them."""
    try:
        return Path("/proc/self/maps").read_text()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Process:
    """A broker on this machine."""

    pid: int
    program: str
    open_files_limit: int | None
    open_files: int | None
    mappings: int | None

    @property
    def is_java(self) -> bool:
        return os.path.basename(self.program) == "java"


@dataclass(frozen=True)
class Machine:
    interpreter: Interpreter = field(default_factory=Interpreter.this)
    proc: Path = Path("/proc")

    def setting(self, name: str) -> int | None:
        """A kernel setting such as vm.max_map_count; None where there is none."""
        try:
            return int((self.proc / "sys" / name.replace(".", "/")).read_text())
        except (OSError, ValueError):
            return None

    def memory(self, name: str) -> int | None:
        """A line of /proc/meminfo, in bytes."""
        for line in self._lines("meminfo"):
            key, _, rest = line.partition(":")
            if key == name:
                return int(rest.split()[0]) * 1024
        return None

    def listener(self, port: int) -> Process | None:
        """The process that listens on a port; None when there is none here, or it belongs to another user."""
        inodes = {f"socket:[{inode}]" for inode in self._listening(port)}
        if not inodes:
            return None
        for directory in self.proc.glob("[0-9]*"):
            try:
                if any(os.readlink(each) in inodes for each in (directory / "fd").iterdir()):
                    return self._process(directory)
            except OSError:
                continue  # it has ended, or is not ours to look into
        return None

    def _listening(self, port: int) -> set[str]:
        wanted, listening = f"{port:04X}", "0A"
        found = set()
        for table in ("net/tcp", "net/tcp6"):
            for line in self._lines(table)[1:]:
                cells = line.split()
                if len(cells) > 9 and cells[1].endswith(f":{wanted}") and cells[3] == listening:
                    found.add(cells[9])
        return found

    def _process(self, directory: Path) -> Process:
        relative = directory.name
        try:
            program = os.readlink(directory / "exe")
        except OSError:
            program = ""
        limit = None
        for line in self._lines(f"{relative}/limits"):
            if line.startswith("Max open files"):
                soft = line[len("Max open files") :].split()[0]
                limit = int(soft) if soft.isdigit() else None
        try:
            open_files = len(list((directory / "fd").iterdir()))
        except OSError:
            open_files = None
        mappings = len(self._lines(f"{relative}/maps")) or None
        return Process(int(relative), program, limit, open_files, mappings)

    def _lines(self, name: str) -> list[str]:
        try:
            return (self.proc / name).read_text(errors="replace").splitlines()
        except OSError:
            return []

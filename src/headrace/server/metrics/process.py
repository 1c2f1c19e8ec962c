"""`process_*`, as Prometheus' own client libraries name them, and how busy the event loop is."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator

from headrace import __version__
from headrace.server.metrics.text import COUNTER, GAUGE, Family, labels, one

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessFamilies:
    def __init__(self) -> None:
        self._loop = time.pthread_getcpuclockid(threading.get_ident())
        self._looked = time.monotonic(), time.clock_gettime(self._loop)
        self._idle = 1.0
        with open("/proc/stat") as statistics:
            boot = next(float(line.split()[1]) for line in statistics if line.startswith("btime"))
        self._started = boot + int(_fields()[19]) / _TICKS

    def families(self) -> Iterator[Family]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        fields = _fields()
        yield one("headrace_build_info", GAUGE, "The version of this broker.", 1, labels(version=__version__))
        yield one("process_cpu_seconds_total", COUNTER, "CPU time used.", usage.ru_utime + usage.ru_stime)
        yield one("process_resident_memory_bytes", GAUGE, "Resident memory.", int(fields[21]) * _PAGE)
        yield one("process_virtual_memory_bytes", GAUGE, "Virtual memory.", int(fields[20]))
        yield one("process_start_time_seconds", GAUGE, "When the process started.", round(self._started, 2))
        yield one("process_threads", GAUGE, "Threads of the process.", int(fields[17]))
        if used := os.stat("/proc/self/fd").st_size:  # Linux 6.2 and newer count them here, at no cost.
            yield one("process_open_fds", GAUGE, "Open file descriptors.", used)
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield one("process_max_fds", GAUGE, "File descriptors the process may have.", most)
        yield from _disk()
        idle = self._idle_share()
        for name in (
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "kafka_network_socketserver_networkprocessoravgidle_percent",
        ):
            yield one(
                name,
                GAUGE,
                "Share of time, 0 to 1, in which the event loop had nothing to do.",
                round(idle, 4),
            )

    def _idle_share(self) -> float:
        """Since the last look that was at least a second ago: two scrapers must not measure each other."""
        now, used = time.monotonic(), time.clock_gettime(self._loop)
        since, before = self._looked
        if now - since >= 1.0:
            self._idle = min(1.0, max(0.0, 1 - (used - before) / (now - since)))
            self._looked = now, used
        return self._idle


def _disk() -> Iterator[Family]:
    """What the kernel read from disks and wrote to them for this process; not everywhere may a process see that of itself."""
    try:
        with open("/proc/self/io") as file:
            counted = dict(line.split(": ") for line in file)
    except OSError:
        return
    prefix = "kafka_server_kafkaserver_linux_disk_"
    yield one(
        prefix + "read_bytes",
        GAUGE,
        "Bytes read from disks, past the page cache.",
        int(counted["read_bytes"]),
    )
    yield one(prefix + "write_bytes", GAUGE, "Bytes written to disks.", int(counted["write_bytes"]))


def _fields() -> list[str]:
    """Of /proc/self/stat, those behind the name of the program, which may hold anything."""
    with open("/proc/self/stat") as file:
        return file.read().rpartition(")")[2].split()

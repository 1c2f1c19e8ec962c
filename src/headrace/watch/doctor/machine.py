"""The machine that Headrace runs on: its interpreter, and limits that brokers on it come near."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from headrace.watch.doctor.contacts import Contact
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, error, listed, note, warning
from headrace.watch.doctor.machine_facts import Process
from headrace.watch.doctor.scene import Scene

_KAFKA_FILES, _KAFKA_MAPPINGS = 3, 2
"""What Apache Kafka opens for each segment: the log and two indexes, and maps: the two indexes."""
_LARGEST_POOL = 16_384


def _interpreter(scene: Scene) -> Iterator[Finding]:
    python = scene.machine.interpreter
    missing = [
        option
        for option, there in (
            ("PGO (--enable-optimizations)", python.profiled),
            ("LTO (--with-lto)", python.link_optimised),
        )
        if not there
    ]
    if python.implementation == "CPython" and missing:
        yield warning(
            f"Python {python.version} at {python.path} was built without {' and '.join(missing)}: a broker on an optimised build "
            "needs 0.76 to 0.91 of the CPU time.",
            "Run brokers with the Python of your distribution, of the python:3 container image, or of 'uv python install'; or "
            "build it with --enable-optimizations --with-lto.",
        )


def _uvloop(scene: Scene) -> Iterator[Finding]:
    if not scene.machine.interpreter.has_uvloop:
        yield error(
            f"uvloop is not installed for {scene.machine.interpreter.path}: no broker starts without it.",
            "Install it in the same environment: pip install uvloop.",
        )


def _file_limit(scene: Scene) -> Iterator[Finding]:
    held = Counter(broker for each in scene.partitions for broker in each.replicas)
    for here, process in _brokers_here(scene):
        limit, replicas = process.open_files_limit, held[here.broker]
        if limit is None:
            continue
        raise_it = (
            f"Raise it where the broker is started, to {max(65_536, 4 * replicas * _KAFKA_FILES):,} or more: LimitNOFILE= in its "
            "systemd unit, or ulimit -n."
        )
        if process.open_files is not None and process.open_files > 0.9 * limit:
            yield error(
                f"Broker {here.broker} (process {process.pid}) has {process.open_files:,} of the {limit:,} files open that it may "
                "open.",
                raise_it,
                [here.broker],
            )
        elif process.is_java and replicas * _KAFKA_FILES > limit:
            yield error(
                f"Broker {here.broker} may open {limit:,} files, and its {replicas:,} replicas need {_KAFKA_FILES} each at least.",
                raise_it,
                [here.broker],
            )
        elif not process.is_java and replicas > min(limit // 2, _LARGEST_POOL):
            yield warning(
                f"Broker {here.broker} may open {limit:,} files and keeps half of them for logs: with {replicas:,} replicas it opens "
                "and closes files all the time.",
                raise_it,
                [here.broker],
            )


def _kernel(scene: Scene) -> Iterator[Finding]:
    held = Counter(broker for each in scene.partitions for broker in each.replicas)
    most = scene.machine.setting("vm.max_map_count")
    for here, process in _brokers_here(scene):
        wanted = max(process.mappings or 0, held[here.broker] * _KAFKA_MAPPINGS)
        if process.is_java and most is not None and wanted > 0.8 * most:
            yield error(
                f"Broker {here.broker} maps two index files for each segment, {wanted:,} or more, and vm.max_map_count is {most:,}: "
                "it ends with 'Map failed' when that is used up.",
                "sysctl -w vm.max_map_count=262144, and the same in /etc/sysctl.d; Headrace's own brokers map no indexes.",
                [here.broker],
            )
    limit, used = scene.machine.memory("CommitLimit"), scene.machine.memory("Committed_AS")
    if scene.machine.setting("vm.overcommit_memory") == 2 and limit is not None and used is not None:
        largest = max(
            (int(own.get("socket.request.max.bytes", 0)) for own in scene.broker_settings.values()), default=0
        )
        if limit - used < 2 * largest:
            yield warning(
                f"vm.overcommit_memory is 2 and only {max(0, limit - used) >> 20:,} MiB are left to commit: a broker reserves the whole "
                f"range of a large request (up to {largest >> 20:,} MiB), and the reservation fails.",
                "sysctl -w vm.overcommit_memory=0, or lower socket.request.max.bytes.",
            )


def _elsewhere(scene: Scene) -> Iterator[Finding]:
    """Limits of processes can only be seen on their own machine; say which were not."""
    away = [each.broker for each in scene.contacts.reached if not each.is_here]
    if away:
        yield note(
            f"Brokers {listed(away)} run on other machines, whose file limits and kernel settings cannot be seen from here.",
            "Run 'headrace doctor --only file-limit,kernel-limits,interpreter' there as well.",
            away,
        )


def _brokers_here(scene: Scene) -> Iterator[tuple[Contact, Process]]:
    for each in scene.contacts.reached:
        process = scene.machine.listener(each.port) if each.is_here else None
        if process is not None:
            yield each, process


INTERPRETER = Check(
    "interpreter",
    Severity.WARNING,
    "whether this Python was built with PGO and LTO",
    Needs.MACHINE,
    _interpreter,
)
UVLOOP = Check("uvloop", Severity.ERROR, "whether uvloop is installed", Needs.MACHINE, _uvloop)
FILE_LIMIT = Check(
    "file-limit",
    Severity.ERROR,
    "file descriptors that brokers on this machine may open, for the replicas they hold",
    Needs.CLUSTER,
    _file_limit,
)
KERNEL = Check(
    "kernel-limits",
    Severity.ERROR,
    "vm.max_map_count for Apache Kafka's brokers on this machine, vm.overcommit_memory for all",
    Needs.CLUSTER,
    _kernel,
)
OTHER_MACHINES = Check(
    "other-machines",
    Severity.NOTE,
    "brokers whose machines cannot be looked at from here",
    Needs.CLUSTER,
    _elsewhere,
)

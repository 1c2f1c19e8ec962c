"""All checks, in the order in which they are asked and shown."""

from __future__ import annotations

from headrace.watch.doctor import (
    addresses,
    certificates,
    clocks,
    disks,
    durability,
    groups,
    listeners,
    machine,
    replicas,
    settings,
    store,
    transactions,
    versions,
)

CHECKS = (
    addresses.REACHABLE,
    addresses.LOOPBACK,
    replicas.BROKERS,
    replicas.PARTITIONS,
    disks.SPACE,
    disks.FORECAST,
    groups.LOSS,
    groups.STANDING,
    groups.UNSEEN,
    transactions.HANGING,
    clocks.CLOCKS,
    durability.SINGLE,
    durability.MINIMUM,
    settings.FILE,
    settings.CONFLICTS,
    settings.INERT,
    listeners.OPEN_LISTENERS,
    certificates.CERTIFICATES,
    store.STORE,
    versions.VERSIONS,
    versions.FEATURES,
    replicas.LEADERS,
    replicas.REPLICAS,
    disks.BALANCE,
    machine.FILE_LIMIT,
    machine.KERNEL,
    machine.INTERPRETER,
    machine.UVLOOP,
    machine.OTHER_MACHINES,
)
NAMES = tuple(each.name for each in CHECKS)

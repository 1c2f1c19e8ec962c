"""What the checks look at. Each part is read once, when a check first asks for it; only the watch is taken twice.

A part that cannot be read raises a `ClientError`; the check that asked for it is then reported as not possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from headrace.client.administration import brokers, configs, features, health, log_dirs, reassignments
from headrace.client.administration import topics as admin
from headrace.client.administration.errors import NotPossible
from headrace.client.administration.session import Session
from headrace.client.errors import BrokerError
from headrace.link.opening import Offer
from headrace.watch.doctor.contacts import Contacts
from headrace.watch.doctor.machine_facts import Machine
from headrace.watch.doctor.watching import Watch

_TOLERANCE = "leader.imbalance.per.broker.percentage"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A broker's settings file, already read and checked by `cli/`, which knows Headrace's settings."""

    path: str
    settings: Mapping[str, str]
    """Every broker setting in effect, defaults included."""
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    """The settings that its topics have by default."""
    invalid: str = ""
    """Why a broker would refuse to start with it."""
    unknown: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    inert: tuple[tuple[str, str], ...] = ()
    """Settings that do not act, and why."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """From where on something is a problem."""

    disk_free_warning: float = 0.15
    """Part of a disk that should be free."""
    disk_free_error: float = 0.05
    disk_full_warning: float = 7 * 86_400.0
    """Seconds until a disk is full."""
    disk_full_error: float = 86_400.0
    loss_warning: float = 86_400.0
    """Seconds until retention may delete unread records."""
    loss_error: float = 3_600.0
    skew: float = 2.0
    """Seconds that clocks may differ by."""
    certificate_warning: float = 30 * 86_400.0
    certificate_error: float = 7 * 86_400.0
    uneven: float = 1.3
    """How many times its fair share a broker may have."""
    uneven_bytes: int = 1 << 30
    """Bytes below which an uneven use of disks does not matter."""
    open_transaction: float | None = None
    """Seconds after which an open transaction may hang; by default the broker's transaction.max.timeout.ms and 5 minutes."""


@dataclass
class Scene:
    machine: Machine
    contacts: Contacts = field(default_factory=lambda: Contacts((), ()))
    watch: Watch | None = None
    """Has the connection; None when no broker answers at its advertised address."""
    file: SettingsFile | None = None
    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of clients, from the file with client properties."""
    inert_in_brokers: Mapping[str, str] = field(default_factory=dict)
    """Settings that do not act in a Headrace broker, and why."""
    bounds: Bounds = field(default_factory=Bounds)
    may_probe: bool = False
    """Whether an offset may be committed, and deleted again, to see the brokers' time."""

    # The cluster.

    @property
    def session(self) -> Session:
        return self.watching.session

    @property
    def watching(self) -> Watch:
        if self.watch is None:
            raise NotPossible("No broker answers at the address it advertises.")
        return self.watch

    @cached_property
    def description(self) -> brokers.Description:
        return brokers.describe(self.session)

    @property
    def live(self) -> list[int]:
        """Brokers that answer."""
        return [each.broker for each in self.contacts.reached]

    @cached_property
    def offers(self) -> dict[int, Offer]:
        return {each.broker: each.offer for each in self.contacts.brokers if each.offer is not None}

    @cached_property
    def features(self) -> list[features.Feature]:
        return features.describe(self.session)

    @cached_property
    def partitions(self) -> list[health.Replica]:
        return health.partitions(self.session)

    @cached_property
    def health(self) -> health.Health:
        tolerated = next(
            (int(own[_TOLERANCE]) for own in self.broker_settings.values() if own.get(_TOLERANCE)), 10
        )
        moves = reassignments.moves(self.session)
        return health.judge(self.description, self.partitions, moves, tolerated)

    @cached_property
    def described_topics(self) -> dict[str, list[configs.Setting]]:
        return configs.describe(self.session, "topic", admin.names(self.session, internal=True))

    @cached_property
    def topic_settings(self) -> dict[str, dict[str, str]]:
        """The values in effect, by topic."""
        return {topic: _values(found) for topic, found in self.described_topics.items()}

    @cached_property
    def described_brokers(self) -> dict[int, list[configs.Setting]]:
        """The settings of each broker that answers and lets us read them."""
        found: dict[int, list[configs.Setting]] = {}
        refused: BrokerError | None = None
        for broker in self.live:
            try:
                found[broker] = configs.describe(self.session, "broker", [str(broker)])[str(broker)]
            except BrokerError as error:
                refused = error
        if refused is not None and not found:
            raise refused
        return found

    @cached_property
    def broker_settings(self) -> dict[int, dict[str, str]]:
        return {broker: _values(found) for broker, found in self.described_brokers.items()}

    @property
    def all_broker_settings(self) -> dict[str, Mapping[str, str]]:
        """Those of the file and of running brokers, by where they stand."""
        found: dict[str, Mapping[str, str]] = {}
        if self.file is not None and not self.file.invalid:
            found[self.file.path] = self.file.settings
        if self.watch is not None:
            found |= {f"broker {broker}": settings for broker, settings in self.broker_settings.items()}
        return found

    @cached_property
    def log_dirs(self) -> dict[int, list[log_dirs.LogDir]]:
        return self.watching.log_dirs(self.live)

    def is_headrace(self, broker: int) -> bool:
        return any(name.startswith("headrace.") for name in self.broker_settings.get(broker, ()))


def _values(settings: list[configs.Setting]) -> dict[str, str]:
    return {each.name: each.value for each in settings if each.value is not None}

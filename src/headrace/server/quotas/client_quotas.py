"""The quotas of one broker: what the cluster's metadata allows clients, and what they have used of it here.

Every broker counts for itself, as in Kafka: a limit of 10 MB/s is 10 MB/s on each broker.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.clock import Clock
from headrace.server.cluster.image import QuotaEntity
from headrace.server.config.broker import BrokerConfig
from headrace.server.quotas.arithmetic import Window
from headrace.server.quotas.sensors import MutationQuota, RateQuota

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"


def client_window(config: BrokerConfig) -> Window:
    return Window(config.integer("quota.window.num"), config.integer("quota.window.size.seconds") * 1000)


class Allowance:
    """What the quotas allow one client, looked up once: valid while its generation is that of the quotas. None: no limit of that kind."""

    __slots__ = ("client_id", "fetch", "generation", "produce", "request", "unlimited", "user")

    def __init__(self, quotas: ClientQuotas, user: str, client_id: str) -> None:
        self.user = user
        self.client_id = client_id
        now = int(quotas.monotonic() * 1000)
        self.generation = -1
        while self.generation != quotas.generation:
            self.generation = (
                quotas.generation
            )  # Looking up may forget others, and what was looked up with them.
            self.produce = quotas.produce.of(self.user, self.client_id, now)
            self.fetch = quotas.fetch.of(self.user, self.client_id, now)
            self.request = quotas.request.of(self.user, self.client_id, now)
        limited = (self.produce, self.fetch, self.request) != (None, None, None)
        self.unlimited = not limited and not quotas.mutations.limits(self.user, self.client_id)

    def renewed(self, quotas: ClientQuotas) -> Allowance:
        """For the same client, now."""
        return Allowance(quotas, self.user, self.client_id)


class ClientQuotas:
    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        window = client_window(config)
        controller_window = Window(
            config.integer("controller.quota.window.num"),
            config.integer("controller.quota.window.size.seconds") * 1000,
        )
        self.monotonic = clock.monotonic
        self.produce = RateQuota(PRODUCER_BYTE_RATE, window)
        self.fetch = RateQuota(CONSUMER_BYTE_RATE, window)
        self.request = RateQuota(REQUEST_PERCENTAGE, window, longest_ms=window.sample_ms)
        self.mutations = MutationQuota(CONTROLLER_MUTATION_RATE, controller_window)
        self.in_force = False
        """Whether any client has a limit. While none has, requests are not metered at all."""
        self.throttled = self.throttled_ms = 0
        """How often clients were told to wait, and for how long altogether."""
        self.generation = 0
        """Changes when a client's limits may have, or what it used is counted somewhere else from now on."""
        for quota in (self.produce, self.fetch, self.request):
            quota.sensors.on_change = self._changed

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """From the metadata, whenever it changes."""
        rates = [quota.sensors for quota in (self.produce, self.fetch, self.request)]
        mutations = self.mutations.sensors
        mutations.apply(quotas)
        for sensors in rates:
            sensors.apply(quotas)
        self._changed()
        self.in_force = mutations.limited or any(sensors.limited for sensors in rates)

    def _changed(self) -> None:
        self.generation += 1

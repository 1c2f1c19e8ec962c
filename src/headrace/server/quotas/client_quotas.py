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

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """From the metadata, whenever it changes."""
        rates = [quota.sensors for quota in (self.produce, self.fetch, self.request)]
        mutations = self.mutations.sensors
        mutations.apply(quotas)
        for sensors in rates:
            sensors.apply(quotas)
        self.in_force = mutations.limited or any(sensors.limited for sensors in rates)

"""A broker with subscriptions, and pushes as clients make them."""

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb

from headrace.testing.wire import WireClient
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.push_telemetry import PushTelemetryRequest
from headrace.wire.schema import ZERO_UUID

CLIENT_METRICS = 16


def counter(name="org.apache.kafka.producer.record.send.total", value=7, **labels):
    """A push of one cumulative sum."""
    point = pb.NumberDataPoint(
        as_int=value,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in labels.items()],
    )
    metric = pb.Metric(
        name=name, sum=pb.Sum(data_points=[point], aggregation_temporality=2, is_monotonic=True)
    )
    return of(metric)


def of(*metrics):
    return pb.MetricsData(
        resource_metrics=[pb.ResourceMetrics(scope_metrics=[pb.ScopeMetrics(metrics=list(metrics))])]
    ).SerializeToString()


class TelemetryWire(WireClient):
    """A client that introduces itself and then does what a test says."""

    def __init__(self, bootstrap, software=("test-client", "1.2.3")):
        super().__init__(bootstrap)
        self.call(ApiVersionsRequest(*software), 3)

    def subscriptions(self, instance=ZERO_UUID):
        return self.call(GetTelemetrySubscriptionsRequest(instance), 0)

    def push(self, told, metrics=b"", codec=0, terminating=False, subscription=None):
        asked = told.subscription_id if subscription is None else subscription
        request = PushTelemetryRequest(told.client_instance_id, asked, terminating, codec, metrics)
        return self.call(request, 0).error_code


def alter(bootstrap, name, **settings):
    """Set the settings of a subscription, `interval_ms` for interval.ms; None deletes one. Returns (error code, message)."""
    configs = [
        AlterableConfig(key.replace("_", "."), 0 if value is not None else 1, value)
        for key, value in settings.items()
    ]
    with WireClient(bootstrap) as client:
        resource = AlterConfigsResource(CLIENT_METRICS, name, configs)
        (answer,) = client.call(IncrementalAlterConfigsRequest([resource]), 1).responses
    return answer.error_code, answer.error_message


@pytest.fixture
def broker(make_broker):
    return make_broker({"telemetry.max.bytes": "2000"})


@pytest.fixture
def client(broker):
    with TelemetryWire(broker.bootstrap) as opened:
        yield opened


def known(broker):
    """The clients that the broker remembers, by their id."""

    async def look(node):
        return {client.id: client for client in node.engines.telemetry.clients()}

    return broker.run(look)

"""Telemetry by the protocol: who is asked for what, who may push when, and what a push may not be. As Kafka's ClientMetricsManager."""

import uuid

import pytest
from crc32c import crc32c
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb

from headrace.server.telemetry import clients as limits
from headrace.server.telemetry import push as push_limits
from headrace.testing.wire import WireClient
from headrace.wire.compression import Codec, compress
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import encode_request
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from tests.server.telemetry.conftest import TelemetryWire, alter, counter, known, of
from tests.waiting import until


def test_the_apis_are_advertised(broker):
    with WireClient(broker.bootstrap) as wire:
        served = {
            api.api_key: (api.min_version, api.max_version)
            for api in wire.call(ApiVersionsRequest("t", "1"), 3).api_keys
        }
    assert (served[71], served[72]) == ((0, 0), (0, 0))


def test_a_client_without_subscriptions_gets_an_id_and_is_asked_for_nothing(client):
    told = client.subscriptions()
    assert told.error_code == 0
    assert told.client_instance_id.int != 0
    assert (told.requested_metrics, told.push_interval_ms) == ([], 300_000)
    assert told.telemetry_max_bytes == 2000
    assert told.accepted_compression_types == [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]
    assert told.delta_temporality is False


def test_an_id_of_its_own_is_kept(client):
    mine = uuid.uuid4()
    assert client.subscriptions(mine).client_instance_id == mine


def test_all_matching_subscriptions_count_and_the_shortest_interval(broker, client):
    alter(broker.bootstrap, "a", metrics="org.apache.kafka.producer.,x", interval_ms="60000")
    alter(broker.bootstrap, "b", metrics="x,y", interval_ms="1000", match="client_id=wire-.*")
    alter(broker.bootstrap, "c", metrics="z", interval_ms="100", match="client_id=wire")
    told = client.subscriptions()
    assert told.requested_metrics == ["org.apache.kafka.producer.", "x", "y"]
    assert told.push_interval_ms == 1000
    half = told.client_instance_id.int >> 64 ^ told.client_instance_id.int & (1 << 64) - 1
    expected = crc32c(b"[org.apache.kafka.producer., x, y]1000") ^ (half >> 32) ^ half & 0xFFFF_FFFF
    assert told.subscription_id & 0xFFFF_FFFF == expected


def test_one_subscription_to_everything_covers_all_others(broker, client):
    alter(broker.bootstrap, "a", metrics="x,y")
    alter(broker.bootstrap, "b", metrics="*")
    assert client.subscriptions().requested_metrics == ["*"]


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_software_name=test-client,client_software_version=1\\.2.*", True),
        ("client_software_name=test", False),
        ("client_source_address=127.0.0.1", True),
        ("client_source_port=[0-9]+", True),
        ("client_instance_id=.+", True),
        ("client_id=wire-test,client_software_name=apache-kafka-java", False),
    ],
)
def test_a_client_is_matched_by_what_it_is(broker, client, match, matches):
    assert alter(broker.bootstrap, "a", metrics="x", match=match) == (0, None)
    assert client.subscriptions().requested_metrics == (["x"] if matches else [])


@pytest.mark.parametrize(
    ("settings", "code", "reason"),
    [
        ({"colour": "red"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: colour"),
        ({"interval_ms": "99"}, ErrorCode.INVALID_REQUEST, "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
        ({"interval_ms": "3600001"}, ErrorCode.INVALID_REQUEST, "Invalid value 3600001"),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id"),
        ({"match": "shoe_size=1"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: shoe_size=1"),
        ({"match": "client_id=("}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=("),
        ({"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern"),
    ],
)  # fmt: skip
def test_a_subscription_that_cannot_work_is_refused_in_kafkas_words(broker, settings, code, reason):
    found, message = alter(broker.bootstrap, "a", **settings)
    assert (found, message[: len(reason)]) == (code, reason)


def test_a_subscription_needs_a_name(broker):
    assert alter(broker.bootstrap, "", metrics="x") == (
        ErrorCode.INVALID_REQUEST,
        "Subscription name can't be empty",
    )


def test_subscriptions_survive_a_restart(make_broker):
    broker = make_broker()
    alter(broker.bootstrap, "a", metrics="x")
    broker.stop()
    broker.start()
    with TelemetryWire(broker.bootstrap) as client:
        assert client.subscriptions().requested_metrics == ["x"]


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_pushed_is_kept_whatever_its_compression(broker, client, codec):
    alter(broker.bootstrap, "a", metrics="*")
    told = client.subscriptions()
    assert client.push(told, compress(codec, counter("sent", 42, node="1")), codec) == 0
    found = known(broker)[told.client_instance_id]
    (series,) = found.push.series
    assert (series.name, series.labels, series.value, series.monotonic) == (
        "sent",
        (("node", "1"),),
        42,
        True,
    )
    assert found.identity[:4] == ("wire-test", "test-client", "1.2.3", "127.0.0.1")


def test_the_first_push_may_come_at_once_and_the_next_one_when_its_interval_is_over(broker, client):
    alter(broker.bootstrap, "a", metrics="*", interval_ms="60000")
    told = client.subscriptions()
    assert client.push(told, counter(value=1)) == 0
    assert client.push(told, counter(value=2)) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.advance(60)
    assert client.push(told, counter(value=3)) == 0
    assert known(broker)[told.client_instance_id].push.series[0].value == 3


def test_asking_again_before_the_interval_is_over_is_refused(broker, client):
    told = client.subscriptions()
    assert client.subscriptions(told.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.advance(301)
    assert client.subscriptions(told.client_instance_id).error_code == 0


def test_a_changed_subscription_is_noticed_at_the_next_push_and_asked_for_at_once(broker, client):
    alter(broker.bootstrap, "a", metrics="x", interval_ms="60000")
    told = client.subscriptions()
    assert client.push(told, counter()) == 0
    alter(broker.bootstrap, "a", metrics="y")
    assert client.push(told, counter()) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = client.subscriptions(told.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (0, ["y"])
    assert again.subscription_id != told.subscription_id
    alter(broker.bootstrap, "a", metrics=None, interval_ms=None)
    assert client.push(again, counter()) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.subscriptions(told.client_instance_id).requested_metrics == []


def test_the_last_push_of_a_client_may_come_early_and_is_the_last(broker, client):
    alter(broker.bootstrap, "a", metrics="*", interval_ms="60000")
    told = client.subscriptions()
    assert client.push(told, counter(value=1)) == 0
    assert client.push(told, counter(value=2), terminating=True) == 0
    assert known(broker)[told.client_instance_id].push.series[0].value == 2
    broker.clock.advance(61)
    assert client.push(told, counter(value=3)) == ErrorCode.INVALID_REQUEST
    assert client.push(told, counter(value=3), terminating=True) == ErrorCode.INVALID_REQUEST


def test_a_push_without_an_id_is_refused(client):
    told = client.subscriptions()
    told.client_instance_id = uuid.UUID(int=0)
    assert client.push(told, counter()) == ErrorCode.INVALID_REQUEST


def bomb(codec):
    return compress(codec, bytes(push_limits.MOST_UNFOLDED_BYTES + 1))


@pytest.mark.parametrize(
    ("push", "code"),
    [
        ({"metrics": counter(), "codec": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": counter(), "codec": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes(2001)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": b"no metrics"}, ErrorCode.INVALID_RECORD),
        ({"metrics": b"no zstd", "codec": Codec.ZSTD}, ErrorCode.INVALID_RECORD),
        ({"metrics": bomb(Codec.ZSTD), "codec": Codec.ZSTD}, ErrorCode.INVALID_RECORD),
        ({"metrics": counter(), "subscription": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
    ],
)
def test_a_push_that_cannot_be_taken_has_kafkas_error_and_the_connection_lives_on(client, push, code):
    assert client.push(client.subscriptions(), **push) == code
    assert client.subscriptions().error_code == 0


def test_a_push_without_metrics_is_taken(broker, client):
    told = client.subscriptions()
    assert client.push(told) == 0
    assert known(broker)[told.client_instance_id].push is None


def test_a_client_that_is_silent_for_three_intervals_is_forgotten(broker, client):
    alter(broker.bootstrap, "a", metrics="*", interval_ms="40000")
    told = client.subscriptions()
    client.push(told, counter())
    broker.clock.advance(119)
    assert told.client_instance_id in known(broker)
    broker.clock.advance(2)
    assert known(broker) == {}


def test_one_client_too_many_takes_the_place_of_the_one_that_was_silent_longest(broker, client, monkeypatch):
    monkeypatch.setattr(limits, "MOST_CLIENTS", 2)
    first, second = client.subscriptions(), client.subscriptions()
    assert client.push(first, counter()) == 0
    third = client.subscriptions()
    assert set(known(broker)) == {first.client_instance_id, third.client_instance_id}
    assert client.push(second, counter()) == 0, "a forgotten client comes back by itself"


def test_more_series_than_are_kept_of_one_client_are_left_out(broker, client, monkeypatch):
    monkeypatch.setattr(push_limits, "MOST_KEPT_BYTES", 1000)
    point = pb.NumberDataPoint(as_double=1.5)
    many = of(*(pb.Metric(name=f"m{number}", gauge=pb.Gauge(data_points=[point])) for number in range(20)))
    told = client.subscriptions()
    assert client.push(told, many) == 0
    push = known(broker)[told.client_instance_id].push
    assert (len(push.series), push.left_out) == (4, 16)


def test_what_all_clients_pushed_together_is_bounded_and_room_comes_back(broker, client, monkeypatch):
    monkeypatch.setattr(limits, "MOST_KEPT_BYTES", 400)
    first, second = client.subscriptions(), client.subscriptions()
    client.push(first, counter("one"))
    client.push(second, counter("two"))
    pushes = {each: client.push for each, client in known(broker).items()}
    assert len(pushes[first.client_instance_id].series) == 1
    assert (pushes[second.client_instance_id].series, pushes[second.client_instance_id].left_out) == ((), 1)
    broker.clock.advance(1000)
    with TelemetryWire(broker.bootstrap) as later:
        third = later.subscriptions()
        later.push(third, counter("three"))
    assert len(known(broker)[third.client_instance_id].push.series) == 1


def test_pushes_that_would_wait_too_long_to_be_read_are_put_off(client, monkeypatch):
    monkeypatch.setattr(limits, "MOST_WAITING", 0)
    assert client.push(client.subscriptions(), counter()) == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_little_of_a_long_client_id_is_kept(broker):
    with TelemetryWire(broker.bootstrap) as client:
        client.socket.sendall(encode_request(GetTelemetrySubscriptionsRequest(), 0, 7, b"x" * 30_000))
        until(lambda: known(broker))
        (kept,) = known(broker).values()
    assert kept.identity.client_id == "x" * 256

"""What the series say, beside what clients did."""

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from headrace.testing.wire import WireClient, batch
from tests.server.api.quota_client import Client, set_quota
from tests.server.metrics.scraping import METRICS, Samples
from tests.server.requests import fetch_request, produce_request, produced
from tests.waiting import until

TOPICS = "kafka_server_brokertopicmetrics_"
REQUESTS = "kafka_network_requestmetrics_"


@pytest.fixture
def broker(make_broker):
    return make_broker(METRICS)


def produce(broker, topic, count, partition=0):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"x" * 100, key=str(number), partition=partition)
    assert producer.flush(60) == 0


def test_records_and_bytes_are_counted_by_topic_and_for_the_broker(broker):
    one, other = broker.create_topic("one"), broker.create_topic("other")
    sent = batch(b"a", b"b", b"c")
    with WireClient(broker.bootstrap) as client:
        for topic in (one, other, other):
            assert produced(client, produce_request(topic, sent)) == 0
        client.call(fetch_request(other), 11)
    found = Samples(broker)
    assert found.one(f"{TOPICS}messagesin_total", topic="one") == 3
    assert found.one(f"{TOPICS}messagesin_total", topic="other") == 6
    assert found.one(f"{TOPICS}bytesin_total", topic="other") == 2 * len(sent)
    assert found.one(f"{TOPICS}bytesout_total", topic="other") == 2 * len(sent)
    assert found.one(f"{TOPICS}bytesout_total", topic="one") is None
    assert found.one(f"{TOPICS}messagesin_total") == 9
    assert found.one(f"{TOPICS}totalproducerequests_total") == 3


def test_the_brokers_totals_do_not_go_back_when_a_topic_is_deleted(broker):
    topic = broker.create_topic("passing")
    produce(broker, topic, 10)
    before = Samples(broker).one(f"{TOPICS}messagesin_total")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    until(lambda: Samples(broker).one(f"{TOPICS}messagesin_total", topic=topic) is None)
    assert Samples(broker).one(f"{TOPICS}messagesin_total") == before == 10


def test_refused_requests_are_counted(broker):
    topic = broker.create_topic("known")
    with WireClient(broker.bootstrap) as client:
        assert produced(client, produce_request(topic, b"\x00" * 80)) != 0
        assert produced(client, produce_request("not-there", batch(b"a"))) != 0
        client.call(fetch_request(topic, offset=99), 11)
    found = Samples(broker)
    assert found.one(f"{TOPICS}failedproducerequests_total", topic="known") == 1
    assert found.one(f"{TOPICS}failedproducerequests_total") == 2
    assert found.one(f"{TOPICS}failedfetchrequests_total", topic="known") == 1


def test_every_request_is_counted_once_in_every_phase(broker):
    topic = broker.create_topic("timed")
    with WireClient(broker.bootstrap) as client:
        request = produce_request(topic, batch(b"a"))
        numbers = [client.send(request, 9) for _ in range(40)]  # some together in one read, some alone
        for number in numbers:
            client.receive(request, 9, number)
        client.call(fetch_request(topic, offset=40, max_wait_ms=50), 11)
    found = Samples(broker)
    assert found.one(f"{REQUESTS}requests_total", request="Produce") == 40
    for phase in ("requestqueue", "local", "remote", "responsequeue", "responsesend", "total"):
        name = f"{REQUESTS}{phase}timems"
        assert found.one(f"{name}_count", request="Produce") == 40
        assert found.one(f"{name}_count", request="FetchConsumer") == 1
        assert found.one(f"{name}_sum", request="Produce") >= 0
    name = "headrace_request_duration_seconds"
    assert found.one(f"{name}_bucket", request="Produce", le="+Inf") == 40
    waited = found.one(f"{REQUESTS}remotetimems_sum", request="FetchConsumer")
    assert waited > 25, (
        "of the 50 ms that it asked for; on a busy machine some have passed when it begins to wait"
    )
    total = found.one(f"{REQUESTS}totaltimems_sum", request="FetchConsumer")
    assert total >= waited
    quantiles = [
        found.one(f"{REQUESTS}totaltimems", request="FetchConsumer", quantile=each)
        for each in ("0.5", "0.99", "0.999")
    ]
    assert 0 < quantiles[0] <= quantiles[1] <= quantiles[2]


def test_one_series_a_topic_unless_every_partition_is_asked_for(broker):
    topic = broker.create_topic("parts", 3)
    for partition in range(3):
        produce(broker, topic, partition + 1, partition)
    found = Samples(broker)
    name = "kafka_topic_partition_current_offset"
    assert found.one(name, topic=topic) == 6
    assert found.of(name, partition="1") == []
    assert found.one("kafka_topic_partitions", topic=topic) == 3
    assert found.one("kafka_topic_partition_replicas", topic=topic) == 3
    assert found.one("kafka_topic_partition_leader_is_preferred", topic=topic) == 3
    size = found.one("kafka_log_log_size", topic=topic)
    every = Samples(broker, "/metrics?partitions=all")
    assert [every.one(name, topic=topic, partition=str(each)) for each in range(3)] == [1, 2, 3]
    assert every.one(name, topic=topic) is None
    assert every.of("kafka_topic_partition_leader", topic=topic) == [1, 1, 1]
    assert sum(every.of("kafka_log_log_size", topic=topic)) == size > 600


def test_every_partition_can_be_made_the_rule_while_the_broker_runs(broker):
    topic = broker.create_topic("parts", 2)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    entry = ConfigEntry("headrace.metrics.partitions", "true", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(60)
    name = "kafka_topic_partition_current_offset"
    until(lambda: Samples(broker).one(name, topic=topic, partition="1") == 0)


def test_groups_have_their_members_offsets_and_lag(broker):
    topic = broker.create_topic("read", 2)
    produce(broker, topic, 5, 0)
    produce(broker, topic, 2, 1)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    seen = []
    until(lambda: (seen.extend(consumer.consume(1, 0.2)), len(seen) >= 7)[1])
    consumer.commit(asynchronous=False)
    produce(broker, topic, 3, 0)
    found = Samples(broker)
    assert found.one("kafka_consumergroup_members", consumergroup="readers") == 1
    where = {"consumergroup": "readers", "topic": topic}
    assert found.one("kafka_consumergroup_lag", **where) == 3
    assert found.one("kafka_consumergroup_lag_sum", **where) == 3
    assert found.one("kafka_consumergroup_current_offset", **where) == 7
    assert found.one("kafka_consumergroup_lag_seconds", **where) >= 0
    every = Samples(broker, "/metrics?partitions=all")
    assert every.one("kafka_consumergroup_lag", partition="0", **where) == 3
    assert every.one("kafka_consumergroup_lag", partition="1", **where) == 0
    assert every.one("kafka_consumergroup_lag_sum", **where) == 3
    consumer.close()
    until(lambda: Samples(broker).one("kafka_consumergroup_members", consumergroup="readers") == 0)


def test_connections_and_the_process_are_there(broker):
    with WireClient(broker.bootstrap):
        name = "kafka_server_socket_server_metrics_connection_count"
        until(lambda: Samples(broker).one(name, listener="PLAINTEXT") == 1)
    found = Samples(broker)
    assert found.one("process_resident_memory_bytes") > 10_000_000
    assert found.one("process_start_time_seconds") > 1_500_000_000
    assert 0 <= found.one("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent") <= 1
    assert found.of("headrace_disk_free_bytes")[0] > 0


def test_clients_that_are_told_to_wait_are_counted(broker):
    topic = broker.create_topic("limited")
    set_quota(broker.bootstrap, (("client-id", "load"),), producer_byte_rate=1000)
    with Client(broker.bootstrap, "load") as client:
        assert Samples(broker).one("headrace_quota_throttles_total") == 0
        assert produced(client, produce_request(topic, batch(b"x" * 50_000))) == 0
    found = Samples(broker)
    assert found.one("headrace_quota_throttles_total") == 1
    assert found.one("headrace_quota_throttle_seconds_total") > 0


def test_the_listener_of_a_stopped_broker_is_closed(make_broker):
    broker = make_broker(METRICS)
    broker.stop()
    with pytest.raises(OSError, match="refused"):
        Samples(broker)

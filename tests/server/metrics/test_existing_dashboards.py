"""The series that dashboards and alert rules for Kafka query, which people have and import: what they name must be there.

The names are what the files of each project query, as of August 2026. What only a JVM, KRaft's quorum or Kubernetes has is left out.
"""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.testing.broker import BrokerThread
from tests.server.metrics.scraping import METRICS, Samples

KAFKA_EXPORTER = {  # danielqsj/kafka_exporter: what it exports, and so its dashboard finds
    "kafka_broker_info",
    "kafka_brokers",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_current_offset_sum",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_sum",
    "kafka_consumergroup_members",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_topic_partitions",
}
STRIMZI = {  # strimzi-kafka-operator, examples/metrics: strimzi-kafka.json, strimzi-kafka-exporter.json, prometheus-kafka-rules.yaml
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_underminisr",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_log_log_size",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_socket_server_metrics_connection_count",
}
OTHERS = {  # what people write down in rules and dashboards of their own
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_network_requestmetrics_requestqueuetimems",
    "kafka_network_requestmetrics_localtimems",
    "kafka_network_requestmetrics_remotetimems",
    "kafka_network_requestmetrics_responsequeuetimems",
    "kafka_network_requestmetrics_responsesendtimems",
    "kafka_server_replicamanager_isrexpands_total",
    "kafka_server_replicamanager_isrshrinks_total",
}
BY_PARTITION = {"kafka_cluster_partition_replicascount", "kafka_log_log_size"}
"""Dashboards fill their choice of topics and partitions from the labels of these."""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with BrokerThread(tmp_path_factory.mktemp("broker"), METRICS) as broker:
        topic = broker.create_topic("orders", 2)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce(topic, b"record", partition=0)
        assert producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        consumer.close()
        yield Samples(broker, "/metrics?partitions=all")


@pytest.mark.parametrize(
    "names", [KAFKA_EXPORTER, STRIMZI, OTHERS], ids=["kafka_exporter", "strimzi", "others"]
)
def test_every_series_that_is_queried_is_there(page, names):
    assert names - page.names == set()


@pytest.mark.parametrize("name", sorted(BY_PARTITION))
def test_topics_and_partitions_can_be_chosen(page, name):
    for number in range(2):
        assert len(page.of(name, topic="orders", partition=str(number))) == 1


def test_a_broker_says_where_it_listens(page):
    assert page.of("kafka_broker_info", id="1") == [1.0]

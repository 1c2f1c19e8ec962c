"""Brokers among themselves over TLS, each showing its own certificate."""

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from tests.certificates import Certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("kind", ["one listener", "a listener of their own"])
def test_followers_fetch_over_tls(certificates, tmp_path, kind):
    settings = certificates.listener(ssl_client_auth="required")
    if kind != "one listener":
        settings |= {
            "listeners": "OUTSIDE://localhost:0,INSIDE://localhost:0",
            "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:SSL",
            "inter.broker.listener.name": "INSIDE",
        }
    with Cluster(BrokerThread, tmp_path, 3, settings) as cluster:
        client = {"bootstrap.servers": ",".join(f"localhost:{each.port}" for each in cluster)}
        if kind == "one listener":
            me = str(certificates.issue("me"))
            client |= {
                "security.protocol": "SSL",
                "ssl.ca.location": str(certificates.ca),
                "ssl.certificate.location": me,
                "ssl.key.location": me,
            }
        admin = AdminClient(client)
        for made in admin.create_topics([NewTopic("t", 1, 3, config={"min.insync.replicas": "3"})]).values():
            made.result(60)
        producer = Producer({**client, "acks": "all"})
        for n in range(500):
            producer.produce("t", b"%d" % n)
        assert producer.flush(60) == 0
        consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        found = []
        while len(found) < 500:
            found += [message.value() for message in consumer.consume(500, 10) if message.error() is None]
        consumer.close()
        assert found == [b"%d" % n for n in range(500)]

"""What a cluster does while something about its security is out of order: the rest goes on, and the log says what to do."""

import logging
from functools import partial

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from headrace.testing.wire import WireClient
from tests.server.security.test_before_the_login import log_in
from tests.waiting import until

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = "listener.name.inside.plain.sasl.jaas.config"


def as_broker(password):
    return f'{PLAIN} required username="broker" password="{password}" user_broker="new";'


SETTINGS = {
    "listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    JAAS: as_broker("new"),
    "replica.lag.time.max.ms": 2_000,
}


@pytest.fixture
def cluster(tmp_path):
    with Cluster(BrokerThread, tmp_path, 3, SETTINGS) as running:
        yield running


async def in_sync(node, topic):
    return set(node.cluster.image.topics[topic].partitions[0].isr)


def test_a_follower_with_an_old_password_falls_behind_alone_and_catches_up_with_the_new_one(cluster, caplog):
    caplog.set_level(logging.INFO)
    topic = cluster.create_topic(partitions=1, config={"min.insync.replicas": 2})
    leader = cluster[1].node.cluster.image.topics[topic].partitions[0].leader
    controller = cluster[1].node.cluster.image.controller_id
    number = next(each for each in (1, 2, 3) if each not in (leader, controller))
    follower, serving = cluster[number], cluster[leader]
    follower.stop()
    follower.settings[JAAS] = as_broker("old")
    follower.start()
    producer = Producer({"bootstrap.servers": serving.bootstrap, "acks": "all"})
    for value in range(10):
        producer.produce(topic, b"%d" % value)
        assert producer.flush(60) == 0
    until(lambda: number not in serving.run(partial(in_sync, topic=topic)))
    sentence = (
        f"This broker cannot connect to broker {leader}: The broker at {serving.node.addresses['INSIDE'][0]}:"
        f"{serving.node.addresses['INSIDE'][1]} refused the login of 'broker'"
    )
    until(lambda: sentence in caplog.text)
    assert caplog.text.count(sentence) == 1
    assert "are those of listener INSIDE." in caplog.text
    until(lambda: "Refused a login of 'broker' from 127.0.0.1 on listener INSIDE" in caplog.text)
    follower.stop()
    follower.settings[JAAS] = as_broker("new")
    follower.start()
    until(lambda: number in serving.run(partial(in_sync, topic=topic)))


async def fill(node, pages):
    """Let the store's file grow no further, as on a full disk; the number it had, or `pages` in its place."""
    database = node.cluster._store._store._database
    if pages is None:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count={pages}")


def add_users(admin, *names):
    """In one change; each entry's future."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = [UserScramCredentialUpsertion(name, info, b"secret") for name in names]
    return list(admin.alter_user_scram_credentials(wanted).values())


def login_of(broker, user):
    return {
        "bootstrap.servers": broker.secured,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": "secret",
    }


def test_a_full_metadata_store_holds_up_changes_and_nothing_else(make_secured, caplog):
    """Logins, permissions and records go on with what is known; a change waits until there is room."""
    broker = make_secured()
    broker.create_topic("t")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for added in add_users(admin, "ada"):
        added.result(60)
    broker.run(partial(fill, pages=None))
    waiting = add_users(admin, *(f"eve-{number}" for number in range(100)))
    until(lambda: "No room is left on the disk for the cluster's metadata" in caplog.text)
    producer = Producer(login_of(broker, "ada"))
    producer.produce("t", b"goes on")
    assert producer.flush(60) == 0
    with WireClient(broker.secured) as stranger:
        assert log_in(stranger, "SCRAM-SHA-512", user="eve-0").error_code
    assert not any(each.done() for each in waiting)
    broker.run(partial(fill, pages=2**30))
    for each in waiting:
        each.result(60)
    assert "t" in AdminClient(login_of(broker, "eve-0")).list_topics("t", timeout=60).topics

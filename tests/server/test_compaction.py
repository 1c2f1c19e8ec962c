"""A compacted topic, seen by a client: the latest value per key stays, tombstones go, changes take effect while running."""

from confluent_kafka import Producer

from tests.server.clients import create, messages, try_to_produce


def read(bootstrap, topic):
    return [(each.offset(), each.key(), each.value()) for each in messages(bootstrap, topic)]


def test_compaction_keeps_the_last_value_of_every_key(make_broker):
    broker = make_broker()
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    }
    create(broker.bootstrap, "accounts", config=settings)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    total = 20000
    for number in range(total):
        producer.produce("accounts", key=b"%d" % (number % 100), value=b"%d %s" % (number, b"x" * 150))
    for key in (7, 8):
        producer.produce("accounts", key=b"%d" % key, value=None)
    assert producer.flush(30) == 0

    async def clean(node):
        while await node.cleaner.clean_one():
            pass

    broker.run(clean)
    found = read(broker.bootstrap, "accounts")
    assert len(found) < total // 2
    offsets = [offset for offset, _, _ in found]
    assert offsets == sorted(set(offsets))
    latest = {key: value for _, key, value in found}
    for key in range(100):
        if key in (7, 8):
            assert latest[b"%d" % key] is None
        else:
            assert latest[b"%d" % key].split()[0] == b"%d" % (total - 100 + key)
    broker.stop()
    broker.start()
    assert read(broker.bootstrap, "accounts") == found


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(make_broker):
    broker = make_broker()
    create(broker.bootstrap, "keyed", config={"cleanup.policy": "compact"})
    (error,) = try_to_produce(broker.bootstrap, "keyed", b"no key")
    assert error.name() == "INVALID_RECORD"

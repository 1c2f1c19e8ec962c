"""aiokafka, asyncio's client."""

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_records_come_back_as_they_went(bootstrap, topic, codec):
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=codec, enable_idempotence=True, linger_ms=10
    ) as producer:
        for n in range(300):
            await producer.send(topic, b"value %d" % n, key=b"k", headers=[("h", b"1")], partition=0)
        await producer.flush()
        last = await producer.send_and_wait(topic, None, key=b"gone", partition=0)
    assert last.offset == 300
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        found = [await consumer.getone() for _ in range(301)]
        assert [record.value for record in found] == [b"value %d" % n for n in range(300)] + [None]
        assert found[0].headers == (("h", b"1"),)
        assert await consumer.end_offsets([partition]) == {partition: 301}
        assert (await consumer.offsets_for_times({partition: found[7].timestamp}))[partition].offset <= 7
    finally:
        await consumer.stop()

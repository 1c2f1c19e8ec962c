"""Topics written elsewhere are taken over with their records, offsets and ids, and nothing else is touched."""

import shutil
import subprocess
import sys

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.broker import BrokerThread
from headrace.testing.wire import WireClient
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic


def adopt(*arguments):
    command = [sys.executable, "-m", "headrace.cli", "topics", "adopt", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def end_offset(bootstrap, topic, partition):
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1, -1)])
    with WireClient(bootstrap) as client:
        return client.call(ListOffsetsRequest(topics=[asked]), 5).topics[0].partitions[0].offset


def test_a_topic_directory_is_adopted_and_served(tmp_path):
    source = BrokerThread(tmp_path / "source").start()
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    admin.create_topics([NewTopic("orders", 2)])["orders"].result(30)
    producer = Producer({"bootstrap.servers": source.bootstrap})
    for index in range(100):
        producer.produce("orders", b"%d" % index, partition=index % 2)
    producer.flush(30)
    source.stop()
    (tmp_path / "target").mkdir()
    stranger = tmp_path / "target" / "not-a-topic"
    stranger.mkdir()
    (stranger / "note.txt").write_text("mine")

    result = adopt(tmp_path / "source", "--data", tmp_path / "target", "--config", "retention.ms=-1")
    assert (result.returncode, result.stderr.count("Traceback")) == (0, 0), result.stderr
    assert "Adopted topic orders: 2 partitions" in result.stdout

    target = BrokerThread(tmp_path / "target").start()
    assert [end_offset(target.bootstrap, "orders", partition) for partition in (0, 1)] == [50, 50]
    produced = []
    again = Producer({"bootstrap.servers": target.bootstrap})
    again.produce(
        "orders", b"new", partition=0, on_delivery=lambda error, message: produced.append(message.offset())
    )
    again.flush(30)
    assert produced == [50]
    target.stop()
    assert (stranger / "note.txt").read_text() == "mine"


def test_mistakes_get_one_sentence_and_leave_nothing_behind(tmp_path):
    source = BrokerThread(tmp_path / "source").start()
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    admin.create_topics([NewTopic("orders", 2)])["orders"].result(30)
    data = tmp_path / "target"
    other = BrokerThread(data).start()
    running = adopt(tmp_path / "source", "--data", data)
    assert (running.returncode, "held by another broker" in running.stderr) == (1, True)
    other.stop()
    source.stop()
    shutil.rmtree(tmp_path / "source" / "orders-0")
    half = adopt(tmp_path / "source", "--data", data)
    assert half.returncode != 0
    assert "lacks partition 0" in half.stderr
    assert "holds no partition folders" in adopt(tmp_path, "--data", data).stderr
    assert not list(data.glob("orders-*"))


def filled(path, topic):
    """A stopped broker's data with a topic of one partition and several segments."""
    source = BrokerThread(path).start()
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    admin.create_topics([NewTopic(topic, 1, config={"segment.bytes": "1048576"})])[topic].result(30)
    producer = Producer({"bootstrap.servers": source.bootstrap, "batch.num.messages": 1})
    for index in range(50):
        producer.produce(topic, b"%02d" % index * 50_000)
    producer.flush(30)
    source.stop()
    return sorted((path / f"{topic}-0").glob("*.log"))


def test_a_topic_with_gaps_that_compaction_left_is_adopted_whole(tmp_path):
    segments = filled(tmp_path / "source", "compacted")
    for file in segments[2].parent.glob(f"{segments[2].stem}.*"):
        file.unlink()
    result = adopt(tmp_path / "source", "--data", tmp_path / "target")
    assert result.returncode == 0, result.stderr
    target = BrokerThread(tmp_path / "target").start()
    assert end_offset(target.bootstrap, "compacted", 0) == 50
    target.stop()


def test_what_a_crash_tore_before_the_adoption_is_cut(tmp_path):
    with filled(tmp_path / "source", "torn")[-1].open("ab") as file:
        file.write(b"\x00" * 30)
    BrokerThread(
        tmp_path / "target"
    ).start().stop()  # it stops cleanly, which says nothing about the adopted logs
    result = adopt(tmp_path / "source", "--data", tmp_path / "target")
    assert result.returncode == 0, result.stderr
    target = BrokerThread(tmp_path / "target").start()
    assert end_offset(target.bootstrap, "torn", 0) == 50
    delivered = []
    producer = Producer({"bootstrap.servers": target.bootstrap})
    producer.produce(
        "torn", b"next", on_delivery=lambda error, message: delivered.append((error, message.offset()))
    )
    producer.flush(30)
    assert delivered == [(None, 50)]
    target.stop()

"""A disk that fails under one replica: the broker's other replicas are not affected."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from headrace.testing.broker import BrokerThread
from headrace.testing.cluster import Cluster
from headrace.testing.disk import FaultyFiles
from tests.server.clients import create, delete, partition_of, produce
from tests.server.replica.logs import log_bytes, log_end_offset
from tests.waiting import until


@pytest.fixture
def disks():
    return {number: FaultyFiles() for number in (1, 2)}


@pytest.fixture
def cluster(tmp_path, disks):
    def make(directory, settings):
        return BrokerThread(directory, settings, files=disks[int(settings["node.id"])])

    running = Cluster(
        make, tmp_path, 2, {"replica.lag.time.max.ms": "2000", "replica.fetch.backoff.ms": "200"}
    )
    for topic in ("sick", "sound"):
        create(running.bootstrap, topic, [1, 2])
    yield running
    for disk in disks.values():
        disk.heal()
    running.stop()


def test_a_follower_whose_disk_fails_for_one_partition_goes_on_with_the_others(cluster, disks):
    for topic in ("sick", "sound"):
        produce(cluster.bootstrap, topic, b"before")
    disks[2].where, disks[2].write_error = "sick-0", errno.EIO
    produce(cluster.bootstrap, "sick", b"not on 2", acks="1")
    until(lambda: partition_of(cluster.bootstrap, "sick").isrs == [1], "the sick replica leaves the ISR")
    produce(cluster.bootstrap, "sound", *(b"%d" % number for number in range(10)))
    until(lambda: log_end_offset(cluster[2], "sound") == 11, "the sound one follows")
    disks[2].heal()
    cluster[2].run(lambda node: node.maintenance.retry_offline())
    until(
        lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2},
        "the healed replica is back in the ISR",
    )


def test_a_leader_whose_disk_fails_lets_another_lead_and_nothing_is_lost(cluster, disks):
    produce(cluster.bootstrap, "sick", b"committed")
    disks[1].where, disks[1].write_error = "sick-0", errno.EIO
    produce(cluster.bootstrap, "sick", b"goes on")  # Delivered only when broker 2 leads.

    async def log_of(node):
        return node.logs.get("sick", 0)

    # The disk comes back without the record that was committed while it worked.
    log = cluster[1].run(log_of)
    until(lambda: log.offline_reason is not None, "the log is offline")
    os.truncate(next(Path(log.directory).glob("*.log")), 0)
    disks[1].heal()
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2}, "broker 1 is back in the ISR")
    until(
        lambda: log_end_offset(cluster[1], "sick") == log_end_offset(cluster[2], "sick") == 2,
        "both have everything",
    )
    assert replicas_are_equal(cluster)
    assert b"committed" in log_bytes(cluster[1], "sick")


def test_a_log_that_failed_is_not_led_again_while_others_in_sync_have_more(cluster):
    produce(cluster.bootstrap, "sick", b"committed")

    def led_by_1_and_in_sync():
        found = partition_of(cluster.bootstrap, "sick")
        return found.leader == 1 and set(found.isrs) == {1, 2}

    until(led_by_1_and_in_sync, "broker 1 leads, and 2 is in sync")

    async def fail_and_retry(node):
        log = node.logs.get("sick", 0)
        log.take_offline("the disk failed")
        await node.maintenance.retry_offline()
        return log.offline_reason

    assert cluster[1].run(fail_and_retry) == "the disk failed"
    until(lambda: partition_of(cluster.bootstrap, "sick").leader == 2, "broker 2 leads")
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2}, "broker 1 is back in the ISR")


def replicas_are_equal(cluster):
    return log_bytes(cluster[1], "sick") == log_bytes(cluster[2], "sick")


def cut_to_one_batch(log):
    """As a disk that lost the last writes: only the first batch is left."""
    path = next(Path(log).glob("*.log"))
    size = 12 + int.from_bytes(path.read_bytes()[8:12], "big")
    os.truncate(path, size)


def epoch_of(cluster, broker):
    async def look(node):
        return node.replicas.image.partition("sick", 0).leader_epoch

    return cluster[broker].run(look)


def alone_with_more_than_it_keeps(cluster):
    """Broker 1 leads and is the only one in sync; broker 2, which is down, has all records of the same term."""
    for number in range(5):
        produce(cluster.bootstrap, "sick", b"first history %d" % number)
    until(lambda: log_end_offset(cluster[2], "sick") == 5, "broker 2 has everything")
    cluster[2].kill()
    until(lambda: partition_of(cluster.bootstrap, "sick").isrs == [1], "broker 1 is alone in sync")
    return epoch_of(cluster, 1)


def go_on_with_another_history(cluster):
    """Past the end of what broker 2 has, so that nothing but the epoch tells the two apart."""
    for number in range(10):
        produce(cluster.bootstrap, "sick", b"second history %d" % number)
    cluster[2].start()
    until(lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2}, "broker 2 is back in the ISR")
    until(lambda: replicas_are_equal(cluster), "both have one history")
    assert log_end_offset(cluster[2], "sick") == 11


def test_the_last_replica_in_sync_leads_on_in_a_new_epoch_when_its_log_comes_back_shorter(cluster):
    epoch = alone_with_more_than_it_keeps(cluster)

    async def fail(node):
        log = node.logs.get("sick", 0)
        log.take_offline("the disk failed")
        cut_to_one_batch(log.directory)
        # Not in the epoch of which it has lost records.
        await node.maintenance.retry_offline()
        return log.offline_reason

    assert cluster[1].run(fail) == "the disk failed"
    until(lambda: epoch_of(cluster, 1) > epoch, "its term has ended")
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    assert log_end_offset(cluster[1], "sick") == 1
    go_on_with_another_history(cluster)


def test_the_last_replica_in_sync_leads_on_in_a_new_epoch_when_it_comes_back_with_less(cluster):
    epoch = alone_with_more_than_it_keeps(cluster)
    cluster[1].kill()
    cut_to_one_batch(cluster[1].data / "sick-0")
    cluster[1].start()
    until(lambda: partition_of(cluster.bootstrap, "sick").leader == 1, "broker 1 leads again")
    assert epoch_of(cluster, 1) > epoch
    go_on_with_another_history(cluster)


def test_a_follower_whose_log_fails_leaves_the_isr_of_a_quiet_partition(cluster):
    for topic in ("sick", "sound"):
        produce(cluster.bootstrap, topic, b"before")

    async def fail_and_retry(node):
        log = node.logs.get("sick", 0)
        log.take_offline("the disk failed")
        # It counts as one that has everything, and may come back with less.
        await node.maintenance.retry_offline()
        return log.offline_reason

    assert cluster[2].run(fail_and_retry) == "the disk failed"
    until(
        lambda: partition_of(cluster.bootstrap, "sick").isrs == [1],
        "it leaves the ISR though nothing is written",
    )
    cluster[2].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2}, "it is back in the ISR")


def test_a_leader_that_cannot_make_its_log_lets_another_lead_and_makes_it_later(cluster, disks):
    disks[1].where, disks[1].write_error = "fresh-0", errno.EIO
    create(cluster.bootstrap, "fresh", [1, 2])
    produce(cluster.bootstrap, "fresh", b"goes on")  # Delivered only when broker 2 leads.
    disks[1].heal()
    cluster[1].run(lambda node: node.maintenance.retry_offline())
    until(
        lambda: set(partition_of(cluster.bootstrap, "fresh").isrs) == {1, 2},
        "broker 1 has its log and is in sync",
    )
    assert log_end_offset(cluster[1], "fresh") == 1


def test_what_a_deleted_topic_left_behind_is_not_found_in_a_new_one_of_its_name(cluster, disks, monkeypatch):
    produce(cluster.bootstrap, "sick", b"old")
    until(lambda: log_end_offset(cluster[2], "sick") == 1, "broker 2 has it")

    def refuse(source, target):
        raise OSError(errno.EIO, os.strerror(errno.EIO), source)

    monkeypatch.setattr(
        type(disks[2]),
        "rename",
        lambda files, *paths: (
            refuse(*paths) if files is disks[2] and paths[0].endswith("sick-0") else os.replace(*paths)
        ),
    )
    delete(cluster.bootstrap, "sick")
    create(cluster.bootstrap, "sick", [1, 2])
    produce(cluster.bootstrap, "sick", b"new", acks="1")
    monkeypatch.undo()
    until(lambda: partition_of(cluster.bootstrap, "sick").isrs == [1], "broker 2 has no log for it")
    cluster[2].run(lambda node: node.maintenance.retry_offline())
    until(lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2}, "broker 2 is in sync")
    assert replicas_are_equal(cluster)
    assert b"old" not in log_bytes(cluster[2], "sick")


def test_a_broker_with_an_old_copy_of_its_data_waits_for_the_one_that_has_everything(cluster, tmp_path):
    produce(cluster.bootstrap, "sick", b"in the copy")
    cluster[1].stop()
    shutil.copytree(cluster[1].data, tmp_path / "copy")
    cluster[1].start()
    until(lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2}, "broker 1 is in sync")
    produce(cluster.bootstrap, "sick", b"since then")
    for broker in cluster:
        broker.kill()
    shutil.rmtree(cluster[1].data)
    shutil.copytree(tmp_path / "copy", cluster[1].data)
    for broker in cluster:
        broker.start()
    until(lambda: set(partition_of(cluster.bootstrap, "sick").isrs) == {1, 2}, "both are in sync")
    until(lambda: replicas_are_equal(cluster), "both have one history")
    assert log_end_offset(cluster[1], "sick") == 2

"""Compaction drops the records of aborted transactions, and markers once they are no longer needed."""

from __future__ import annotations

from tests.server.log.compacting import DAY


async def test_records_of_aborted_transactions_go_and_of_committed_ones_stay(make_compacted, clock):
    box = make_compacted()

    def write(producer_id, sequence, key, value):
        box.put(
            key, value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
        )

    box.put(b"x", b"old")
    box.put(b"y", b"old")
    write(1, 0, b"x", b"aborted")
    write(2, 0, b"y", b"committed")
    box.log.roll()
    box.marker(1, committed=False)
    box.marker(2, committed=True)
    box.put(b"z", b"v")
    await box.clean()
    values = {key: value for _, key, value in box.records() if not key.startswith(b"\x00\x00")}
    assert values == {b"x": b"old", b"y": b"committed", b"z": b"v"}
    assert [t.producer_id for t in box.log.aborted_transactions(0, 100)] == [1], (
        "until the marker goes, its transaction stays in the index"
    )


async def test_markers_go_after_their_records_and_the_delay(make_compacted, clock):
    box = make_compacted(delete_retention_ms=DAY)
    for producer_id in (1, 2):
        box.put(
            b"k%d" % producer_id,
            b"v",
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        box.marker(producer_id, committed=producer_id == 2)
    box.put(b"k2", b"newer")

    def markers():
        return [header.producer_id for header in box.headers() if header.is_control and header.records_count]

    await box.clean()
    assert markers() == [1, 2], "their producers are active: batches without records stay for their sequences"
    clock.advance(10 * DAY)
    box.log.expire_producers()
    for _ in range(2):
        box.put(b"other", b"1")
        await box.clean()
        assert markers() == [1, 2], "first the batches go, then the markers get their delete horizon"
    clock.advance(DAY + 1)
    box.put(b"other", b"2")
    await box.clean()
    assert markers() == []
    assert box.log.aborted_transactions(0, 100) == []


async def test_an_open_transaction_holds_compaction_back(make_compacted):
    box = make_compacted(segment_bytes=150)
    for number in range(5):
        box.put(b"k", b"%d" % number)
    box.put(b"t", b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    for number in range(5, 10):
        box.put(b"k", b"%d" % number)
    await box.clean()
    offsets = [offset for offset, _, _ in box.records()]
    assert [offset for offset in offsets if offset >= 5] == list(range(5, 11))
    assert len(offsets) < 11

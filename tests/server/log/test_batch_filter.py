"""Which records of a batch stay, however much of it the offset map covers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.server.log.compaction import BYTES_PER_KEY, BatchFilter, OffsetMap, TransactionFilter, map_batch
from headrace.wire.batch import parse_header
from headrace.wire.records import BatchBuilder, decode_records

BATCHES = st.lists(
    st.lists(
        st.tuples(st.none() | st.sampled_from([b"a", b"b", b"c", b"d" * 40]), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=8,
)


@given(BATCHES, st.integers(0, 20), st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_record_stays_when_no_later_one_has_its_key_whatever_is_known_of_its_batch(
    batches, start, room, random
):
    """Batches that were mapped as a whole, in part or not at all, with offsets in their places or elsewhere."""
    built, base = [], 0
    for pairs in batches:
        builder = BatchBuilder(base_offset=base)
        places = list(range(len(pairs)))
        last = base + len(pairs) - 1
        if random.random() < 0.3:
            random.shuffle(places)
        elif random.random() < 0.3:
            places = sorted(random.sample(range(len(pairs) + 3), len(pairs)))
            last = base + len(pairs) + 2
        for place, (key, has_value) in zip(places, pairs, strict=True):
            builder.append(1000, key, b"v" if has_value else None, offset=base + place)
        built.append(builder.build(last_offset=last))
        base = last + 1
    offsets = OffsetMap(room * BYTES_PER_KEY, start)
    mapped = {}
    for batch in built:
        header = parse_header(batch)
        if header.last_offset >= start and not map_batch(offsets, TransactionFilter(), header, batch):
            break
        for record in decode_records(batch, header):
            if record.key is not None and record.offset >= start:
                mapped[record.key] = record.offset
    offsets.finish()
    horizon = BatchFilter(offsets, TransactionFilter(), {}, now_ms=5000, delete_retention_ms=10, upper=-1)
    for batch in built:
        header = parse_header(batch)
        kept = horizon.filter(header, batch)
        expected = [
            (record.offset, record.key, record.value, record.timestamp)
            for record in decode_records(batch, header)
            if record.offset > offsets.latest_offset
            or (record.key is not None and record.offset >= offsets.get(record.key))
        ]
        found = [] if kept is None else decode_records(kept)
        assert [(record.offset, record.key, record.value, record.timestamp) for record in found] == expected
    for key, offset in mapped.items():
        assert offsets.get(key) >= offset

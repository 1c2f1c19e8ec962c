"""Walking records without decoding them finds what decoding finds, and no input leads it out of bounds."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.batch import parse_header
from headrace.wire.errors import KafkaError
from headrace.wire.raw_records import iterate_raw, pick_records, plainly_keyed, read_keys
from headrace.wire.records import BatchBuilder, decode_records, read_payload

DATA = st.none() | st.binary(max_size=300)
RECORDS = st.lists(st.tuples(st.integers(0, 2**41), DATA, DATA), min_size=1, max_size=200)


def payload_of(records, offsets=None):
    builder = BatchBuilder()
    for number, (timestamp, key, value) in enumerate(records):
        builder.append(timestamp, key, value, offset=offsets[number] if offsets else None)
    batch = builder.build()
    return batch, read_payload(batch, parse_header(batch))


@given(RECORDS)
def test_keys_are_those_that_decoding_finds(records):
    batch, payload = payload_of(records)
    assert read_keys(payload, len(records)) == ([record.key for record in decode_records(batch)], True)


@given(RECORDS, st.data())
def test_offsets_that_do_not_count_up_are_noticed(records, data):
    offsets = data.draw(st.permutations(range(len(records))))
    _, payload = payload_of(records, offsets)
    keys, in_order = read_keys(payload, len(records))
    assert keys == [key for _, key, _ in records]
    assert in_order == (offsets == list(range(len(records))))


@given(RECORDS, st.data())
def test_records_are_picked_by_their_place(records, data):
    _, payload = payload_of(records)
    numbers = sorted(data.draw(st.sets(st.integers(0, len(records) - 1))))
    whole = pick_records(payload, range(len(records)))
    assert b"".join(whole) == payload
    assert pick_records(payload, numbers) == [whole[number] for number in numbers]


@given(RECORDS, st.data())
def test_damaged_records_are_refused_or_walked_within_their_bytes(records, data):
    _, payload = payload_of(records)
    damaged = bytearray(payload)
    for at, byte in data.draw(st.dictionaries(st.integers(0, len(payload) - 1), st.integers(0, 255))).items():
        damaged[at] = byte
    for walk in (
        lambda: read_keys(bytes(damaged), len(records)),
        lambda: pick_records(bytes(damaged), range(len(records))),
    ):
        with contextlib.suppress(KafkaError):
            walk()
    if plainly_keyed(bytes(damaged), len(records)):
        closer = list(iterate_raw(bytes(damaged), len(records)))
        assert [offset_delta for _, _, _, offset_delta, *_ in closer] == list(range(len(records)))
        assert all(key_length >= 0 for _, _, _, _, _, key_length, *_ in closer)


SHORT = st.lists(
    st.tuples(st.integers(0, 5000), st.binary(max_size=63), st.none() | st.binary(max_size=5000))
)


@given(SHORT, st.data())
def test_a_look_is_enough_to_see_that_all_have_keys(rest, data):
    first = (0, b"k", b"v")
    records = [first, *rest]
    assert plainly_keyed(payload_of(records)[1], len(records))
    records.insert(data.draw(st.integers(0, len(records))), (0, None, b"v"))
    assert not plainly_keyed(payload_of(records)[1], len(records))


def test_what_follows_the_last_record_is_not_overlooked():
    _, payload = payload_of([(1, b"k", b"v")])
    with pytest.raises(KafkaError, match="1 bytes follow the last of 1 records"):
        read_keys(payload + b"x", 1)

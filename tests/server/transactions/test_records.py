"""What the coordinator stores of a transaction is what it finds again, in both versions of the record."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.server.transactions.metadata import NO_EPOCH, NO_PRODUCER_ID, Status, Transaction
from headrace.server.transactions.records import TransactionRecord, decode_record, encode_record

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)
producer_ids = st.integers(-1, 2**63 - 1)
times = st.integers(-1, 2**63 - 1)
transactions = st.builds(
    Transaction,
    transactional_id=names,
    producer_id=producer_ids,
    producer_epoch=st.integers(-1, 2**15 - 1),
    timeout_ms=st.integers(0, 2**31 - 1),
    status=st.sampled_from([status for status in Status if status is not Status.EMPTY]),
    partitions=st.frozensets(st.tuples(names, st.integers(0, 2**31 - 1)), max_size=200),
    started_ms=times,
    updated_ms=times,
    previous_producer_id=producer_ids,
    next_producer_id=producer_ids,
    last_epoch=st.just(NO_EPOCH),
    client_version=st.sampled_from([0, 2]),
)


@given(transactions)
def test_version_1_keeps_everything(transaction):
    key, value = encode_record(TransactionRecord(transaction.transactional_id, transaction), 1)
    found = decode_record(bytes(key), bytes(value))
    assert found == TransactionRecord(transaction.transactional_id, transaction)


@given(transactions)
def test_version_0_has_no_place_for_what_kip_890_added(transaction):
    key, value = encode_record(TransactionRecord(transaction.transactional_id, transaction), 0)
    kept = transaction._replace(
        previous_producer_id=NO_PRODUCER_ID, next_producer_id=NO_PRODUCER_ID, client_version=0
    )
    assert decode_record(bytes(key), bytes(value)) == TransactionRecord(transaction.transactional_id, kept)


@pytest.mark.parametrize("version", [0, 1])
def test_an_empty_transaction_and_one_that_is_forgotten(version):
    empty = Transaction("id", 7, 3, 60_000, updated_ms=5)
    key, value = encode_record(TransactionRecord("id", empty), version)
    assert decode_record(bytes(key), bytes(value)) == TransactionRecord("id", empty)
    assert encode_record(TransactionRecord("id", None), version) == (key, None)


def test_the_bytes_are_kafkas():
    transaction = Transaction(
        "tx", 258, 3, 60_000, Status.PREPARE_COMMIT, frozenset({("a", 1), ("a", 0)}), 16, 17, client_version=2
    )
    key, value = encode_record(TransactionRecord("tx", transaction), 1)
    assert key.hex(" ", -2) == "0000 0002 7478"
    assert value.hex() == (
        "0001" "0000000000000102" "0003" "0000ea60" "02"
        "02" "0261" "03" "00000000" "00000001" "00"
        "0000000000000011" "0000000000000010"
        "01" "02" "02" "0002"
    )  # fmt: skip

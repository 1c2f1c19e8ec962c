"""A commit kept ready is stored as the same bytes as one encoded from its fields."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.server.groups.messages.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.server.groups.offsets.form import CommitForm
from headrace.server.groups.records import GroupRecord, encode_record
from headrace.wire.records import plain_record

TEXTS = st.text(max_size=300)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(
    TEXTS,
    TEXTS,
    st.integers(0, 2**31 - 1),
    st.integers(-1, 9),
    TEXTS,
    st.lists(st.tuples(st.integers(0, 3_000_000), NUMBERS, NUMBERS), min_size=1, max_size=5),
)
@settings(deadline=None)
def test_a_form_writes_what_the_record_would_be(group, topic, partition, epoch, metadata, written) -> None:
    form = CommitForm(group, topic, partition, epoch, metadata)
    for index, offset, now in written:
        record = GroupRecord(
            OffsetCommitKey(group, topic, partition), OffsetCommitValue(offset, epoch, metadata, now)
        )
        assert form.encode(index, offset, now) == plain_record(index, *encode_record(record))

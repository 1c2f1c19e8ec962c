"""Sets of offsets as spans do what sets do."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.client.spans import Spans

OFFSETS = st.integers(0, 60)
PAIRS = st.tuples(OFFSETS, OFFSETS).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(st.tuples(st.booleans(), PAIRS), max_size=30))
def test_adding_and_removing_is_as_with_a_set(steps: list[tuple[bool, tuple[int, int]]]) -> None:
    spans, model = Spans(), set[int]()
    for adds, (first, last) in steps:
        offsets = range(first, last + 1)
        if adds:
            spans.add(first, last)
            model.update(offsets)
        else:
            spans.remove(first, last)
            model.difference_update(offsets)
        assert list(spans.offsets()) == sorted(model)
        assert len(spans) == len(model)
        assert bool(spans) == bool(model)
        assert all((offset in spans) == (offset in model) for offset in range(62))
        assert Spans.from_text(str(spans)) == spans
        assert all(
            after - before > 1 for (_, before), (after, _) in zip(list(spans), list(spans)[1:], strict=False)
        )


@given(st.sets(OFFSETS), st.sets(OFFSETS))
def test_two_are_joined_and_subtracted(one: set[int], other: set[int]) -> None:
    joined, rest = Spans.of(one), Spans.of(one)
    joined.update(Spans.of(other))
    rest.subtract(Spans.of(other))
    assert list(joined.offsets()) == sorted(one | other)
    assert list(rest.offsets()) == sorted(one - other)


def test_the_text_is_short() -> None:
    assert str(Spans.of([30, 17, 18, 19, 20, 21, 22, 23, 24, 25])) == "17-25,30"

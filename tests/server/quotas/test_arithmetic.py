"""Rates and token buckets, against models of what Kafka's Rate, SampledStat and TokenBucket do step by step."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.server.quotas.arithmetic import INT_MAX, Rate, TokenBucket, Window

WINDOW = Window(11, 1000)


class RingOfSamples:
    """Kafka's way: one slot more than there are samples, used in turn; a slot that is too old is set back in place."""

    def __init__(self, window):
        self.window = window
        self.slots = []
        self.current = 0

    def record(self, value, now):
        if not self.slots:
            self.slots.append([now, now, 0.0])
        slot = self.slots[self.current]
        if now - slot[0] >= self.window.sample_ms:
            self.current = (self.current + 1) % (self.window.samples + 1)
            if self.current >= len(self.slots):
                self.slots.append([now, now, 0.0])
            slot = self.slots[self.current]
            slot[:] = [now, now, 0.0]
        slot[2] += value
        slot[1] = now

    def throttle_ms(self, limit, now):
        for slot in self.slots:
            if now - slot[1] >= self.window.samples * self.window.sample_ms:
                slot[:] = [now, now, 0.0]
        elapsed = now - min((slot[0] for slot in self.slots), default=now)
        full = elapsed // self.window.sample_ms
        if full < self.window.samples - 1:
            elapsed += (self.window.samples - 1 - full) * self.window.sample_ms
        span = max(elapsed, 1)
        rate = sum(slot[2] for slot in self.slots) / (span / 1000)
        return 0 if rate <= limit else math.floor((rate - limit) / limit * span + 0.5)


@given(
    st.builds(Window, st.integers(1, 12), st.sampled_from([1000, 2000, 5000])),
    st.integers(1, 10_000),
    st.lists(st.tuples(st.integers(0, 30_000), st.integers(-50, 100_000)), max_size=60),
)
def test_a_rate_throttles_as_kafkas_ring_of_samples_does(window, limit, uses):
    rate, ring, now = Rate(window), RingOfSamples(window), 1_000_000
    for later, value in uses:
        now += later
        rate.record(value, now)
        ring.record(value, now)
        assert rate.throttle_ms(limit, now) == pytest.approx(ring.throttle_ms(limit, now), abs=1)


def test_a_client_that_begins_may_send_ten_seconds_worth_at_once():
    rate = Rate(WINDOW)
    rate.record(10_000, 5)
    assert rate.throttle_ms(1000, 5) == 0
    rate.record(1, 5)
    assert rate.throttle_ms(1000, 5) == 1


def test_the_wait_is_what_brings_the_rate_over_the_window_down_to_the_limit():
    rate = Rate(WINDOW)
    rate.record(50_000, 0)
    assert rate.throttle_ms(1000, 0) == 40_000, "5000 a second over 10 s, so 40 s more"


def test_what_is_older_than_the_window_does_not_count():
    rate = Rate(WINDOW)
    rate.record(50_000, 0)
    assert not rate.spent(10_999)
    assert rate.spent(11_000)
    assert rate.throttle_ms(1, 11_000) == 0


def test_what_is_taken_back_does_not_count():
    rate = Rate(WINDOW)
    rate.record(50_000, 0)
    rate.record(-50_000, 0)
    assert rate.throttle_ms(1, 0) == 0


def test_a_wait_fits_into_the_field_of_the_reply():
    rate = Rate(WINDOW)
    rate.record(1e18, 0)
    assert rate.throttle_ms(1, 0) == INT_MAX


class TokensStepByStep:
    """Kafka's way: a bucket that was never used has not been filled since 1970."""

    def __init__(self, window):
        self.window = window
        self.tokens = 0.0
        self.updated = 0

    def refill(self, limit, now):
        burst = self.window.samples * (self.window.sample_ms / 1000) * limit
        self.tokens = min(burst, self.tokens + limit * (now - self.updated) / 1000)
        self.updated = now
        return burst

    def take(self, value, limit, now):
        self.tokens = min(self.refill(limit, now), self.tokens - value)

    def throttle_ms(self, limit, now):
        self.refill(limit, now)
        return math.floor(-self.tokens / limit * 1000 + 0.5) if self.tokens < 0 else 0


@given(
    st.floats(0.1, 100),
    st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 500), st.booleans()), max_size=40),
)
def test_a_bucket_throttles_as_kafkas_does(limit, uses):
    bucket, model, now = TokenBucket(WINDOW), TokensStepByStep(WINDOW), 10_000_000_000
    for later, value, doubled in uses:
        now += later
        quota = limit * 2 if doubled else limit
        bucket.take(value, quota, now)
        model.take(value, quota, now)
        assert bucket.throttle_ms(quota, now) == pytest.approx(model.throttle_ms(quota, now), abs=1)


def test_a_bucket_holds_a_windows_worth_and_may_be_overdrawn_once():
    bucket = TokenBucket(WINDOW)
    bucket.take(11, 1, 0)
    assert bucket.throttle_ms(1, 0) == 0
    bucket.take(5, 1, 0)
    assert bucket.throttle_ms(1, 0) == 5000
    assert bucket.throttle_ms(1, 5000) == 0


def test_a_full_bucket_is_as_good_as_new():
    bucket = TokenBucket(WINDOW)
    bucket.take(3, 1, 0)
    assert not bucket.spent(2999)
    assert bucket.spent(3000)

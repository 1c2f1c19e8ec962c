"""Which of a cluster's quotas a client has, who shares it, and how long what was used is remembered."""

import pytest

from headrace.server.quotas.arithmetic import Window
from headrace.server.quotas.limits import QuotaLimits
from headrace.server.quotas.sensors import MutationQuota, RateQuota

KIND = "producer_byte_rate"
LEVELS = [
    ((("user", "ada"), ("client-id", "app")), ("ada", "app")),
    ((("user", "ada"), ("client-id", None)), ("ada", "app")),
    ((("user", "ada"),), ("ada", "")),
    ((("user", None), ("client-id", "app")), ("ada", "app")),
    ((("user", None), ("client-id", None)), ("ada", "app")),
    ((("user", None),), ("ada", "")),
    ((("client-id", "app"),), ("", "app")),
    ((("client-id", None),), ("", "app")),
]
"""From the most specific to the least, with who shares the limit."""
OTHERS = {
    (("user", "ben"),): {KIND: 1.0},
    (("user", "ada"), ("client-id", "other")): {KIND: 1.0},
    (("user", "ben"), ("client-id", "app")): {KIND: 1.0},
    (("client-id", "other"),): {KIND: 1.0},
    (("ip", None),): {"connection_creation_rate": 1.0},
}
WINDOW = Window(11, 1000)


@pytest.mark.parametrize("most_specific", range(8))
def test_the_most_specific_level_that_names_a_client_decides(most_specific):
    quotas = {entity: {KIND: 100.0 + level} for level, (entity, _) in enumerate(LEVELS)}
    for entity, _ in LEVELS[:most_specific]:
        quotas[entity] = {"consumer_byte_rate": 5.0}
    found = QuotaLimits(OTHERS | quotas, KIND).find("ada", "app")
    assert found == (LEVELS[most_specific][1], 100.0 + most_specific)


def test_a_client_that_nothing_names_has_no_limit():
    assert QuotaLimits(OTHERS, KIND).find("ada", "app") is None
    assert not QuotaLimits({(("ip", None),): {"connection_creation_rate": 1.0}}, KIND)


def test_a_client_without_an_id_has_only_the_limits_of_its_user():
    quotas = {(("client-id", None),): {KIND: 1.0}, (("user", None), ("client-id", None)): {KIND: 2.0}}
    assert QuotaLimits(quotas, KIND).find("ada", "") is None
    assert QuotaLimits(quotas | {(("user", None),): {KIND: 3.0}}, KIND).find("ada", "") == (("ada", ""), 3.0)


def record(quota, user, client_id, value, now):
    rate = quota.of(user, client_id, now)
    return 0 if rate is None else rate.record(value, now)


def test_clients_of_one_user_share_its_limit_and_a_default_gives_each_its_own():
    quota = RateQuota(KIND, WINDOW)
    quota.sensors.apply({(("user", "ada"),): {KIND: 1000.0}, (("client-id", None),): {KIND: 1000.0}})
    assert record(quota, "ada", "one", 10_000, 0) == 0
    assert record(quota, "ada", "two", 10_000, 0) == 10_000
    assert record(quota, "ben", "one", 10_000, 0) == 0
    assert record(quota, "ben", "two", 10_000, 0) == 0
    assert record(quota, "tom", "two", 10_000, 0) == 10_000, (
        "a client id without a user's limit is all users'"
    )


def test_a_new_limit_holds_for_what_was_used_before():
    quota = RateQuota(KIND, WINDOW)
    quota.sensors.apply({(("user", "ada"),): {KIND: 1000.0}})
    assert record(quota, "ada", "", 10_000, 0) == 0
    quota.sensors.apply({(("user", "ada"),): {KIND: 500.0}})
    assert record(quota, "ada", "", 0, 0) == 10_000
    quota.sensors.apply({(("user", "ada"),): {KIND: 5000.0}})
    assert record(quota, "ada", "", 0, 0) == 0
    quota.sensors.apply({})
    assert record(quota, "ada", "", 1_000_000, 0) == 0
    assert len(quota.sensors) == 0


def test_a_wait_may_have_a_longest_time():
    quota = RateQuota(KIND, WINDOW, longest_ms=1000)
    quota.sensors.apply({(("user", "ada"),): {KIND: 1.0}})
    assert record(quota, "ada", "", 1_000_000, 0) == 1000


def test_thousands_of_client_ids_are_forgotten_once_nothing_of_theirs_counts():
    quota = RateQuota(KIND, WINDOW)
    quota.sensors.apply({(("client-id", None),): {KIND: 1.0}})
    for number in range(5000):
        record(quota, "ada", f"client-{number}", 100, number)
    assert len(quota.sensors) == 5000
    record(quota, "ada", "another", 1, 4999 + WINDOW.span_ms)
    assert len(quota.sensors) == 1


def test_an_overdrawn_bucket_is_remembered_until_it_is_full_again():
    quota = MutationQuota("controller_mutation_rate", WINDOW)
    quota.sensors.apply({(("client-id", None),): {"controller_mutation_rate": 1.0}})
    assert quota.take("ada", "old", 111, 0) == 100_000
    assert quota.take_if_allowed("ada", "strict", 111, 0) == 0, "the first to overdraw it goes through"
    assert quota.take_if_allowed("ada", "strict", 1, 0) == 100_000
    quota.take("ada", "another", 1, 110_999)
    assert len(quota.sensors) == 3
    quota.take("ada", "yet another", 1, 111_000 + WINDOW.span_ms)
    assert len(quota.sensors) == 1

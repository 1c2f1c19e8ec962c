"""Subscriptions by pattern in the consumer protocol: the broker matches the names of topics."""

from __future__ import annotations

from headrace.wire.errors import ErrorCode
from tests.server.groups.refusals import refused

ALL = [0, 1, 2, 3]


async def test_a_pattern_is_matched_by_the_broker_against_whole_names(groups) -> None:
    groups.topics.set("orders-eu", 1)
    groups.topics.set("my-orders", 1)
    joined = await groups.consumer("a", regex="orders.*")
    assert groups.partitions(joined) == {"orders": ALL, "orders-eu": [0]}
    groups.topics.set("orders-us", 2)
    assert groups.partitions(await groups.consumer("a", 1)) == {
        "orders": ALL,
        "orders-eu": [0],
        "orders-us": [0, 1],
    }


async def test_names_and_a_pattern_add_up(groups) -> None:
    joined = await groups.consumer("a", topics=["payments"], regex="ord.*")
    assert groups.partitions(joined) == {"orders": ALL, "payments": [0, 1]}


async def test_a_pattern_that_is_not_re2_is_refused_and_one_that_would_hang_others_is_harmless(
    groups,
) -> None:
    code, message = await refused(groups.consumer("a", regex="(orders"))
    assert code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "`(orders` is not a valid RE2 regular expression" in message
    assert (await refused(groups.consumer("a", regex=r"(a)\1")))[0] == ErrorCode.INVALID_REGULAR_EXPRESSION
    groups.topics.set("a" * 200, 1)
    joined = await groups.consumer("a", regex="(a+)+b")
    assert groups.partitions(joined) == {}


async def test_a_pattern_nobody_uses_any_more_is_forgotten(groups) -> None:
    await groups.consumer("a", regex="orders")
    assert groups.partitions(await groups.consumer("a", 1, regex="payments")) == {}
    assert groups.partitions(await groups.consumer("a", 1, owned={})) == {"payments": [0, 1]}
    await groups.restart()
    full = await groups.consumer("a", 2, topics=[], owned={}, rebalance_ms=1000)
    assert groups.partitions(full) == {"payments": [0, 1]}


async def test_topics_a_member_may_not_see_do_not_exist_for_its_pattern(groups) -> None:
    plain = groups.client
    groups.client = lambda version: plain(version)._replace(may_describe=lambda topic: topic != "orders")
    joined = await groups.consumer("a", regex="orders|payments")
    assert groups.partitions(joined) == {"payments": [0, 1]}


async def test_what_members_may_see_is_looked_at_again_from_time_to_time(groups) -> None:
    hidden = {"orders"}
    plain = groups.client
    groups.client = lambda version: plain(version)._replace(may_describe=lambda topic: topic not in hidden)
    epoch = (await groups.consumer("a", regex="orders|payments")).member_epoch
    hidden.clear()
    seen = {"payments": [0, 1]}
    for _ in range(70):
        await groups.pass_time(10)
        answer = await groups.consumer("a", epoch, owned=seen)
        epoch, seen = answer.member_epoch, groups.partitions(answer) or seen
    assert seen == {"orders": [0, 1, 2, 3], "payments": [0, 1]}

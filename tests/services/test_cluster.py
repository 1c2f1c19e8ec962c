"""Choosing among providers and what a failed call means, with providers that fail to order."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from headrace.services import RpcCode, RpcException
from headrace.services.cluster.configurator import AbsentConfigurator, OverrideConfigurator
from headrace.services.cluster.directory import merge_url
from headrace.services.cluster.directory_base import StaticDirectory
from headrace.services.cluster.failback import FailbackCluster
from headrace.services.cluster.loadbalance import (
    ConsistentHashLoadBalance,
    LeastActiveLoadBalance,
    LoadBalance,
    RandomLoadBalance,
    RoundRobinLoadBalance,
    weight_of,
)
from headrace.services.cluster.router import Router, route, to_routers
from headrace.services.cluster.rules import to_configurators
from headrace.services.cluster.strategies import (
    AvailableCluster,
    ClusterInvoker,
    FailfastCluster,
    FailoverCluster,
    FailsafeCluster,
    ForkingCluster,
)
from headrace.services.interface import describe
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker
from headrace.services.url import URL, encode


class Api:
    def get(self, key: str) -> str: ...  # type: ignore[empty-body]


INTERFACE = describe(Api, "com.acme.Api")


class Provider(Invoker):
    """Answers with its port, or fails, and counts."""

    def __init__(
        self, port: int, *, fail: RpcException | None = None, delay: float = 0, **parameters: object
    ) -> None:
        super().__init__(INTERFACE, URL("dubbo", "10.0.0.1", port, "com.acme.Api").add(parameters))
        self.fail = fail
        self.delay = delay
        self.calls = 0
        self.available = True

    @property
    def is_available(self) -> bool:
        return self.available

    async def invoke(self, invocation: Invocation) -> Result:
        self.calls += 1
        await asyncio.sleep(self.delay)
        if self.fail is not None:
            raise self.fail
        return Result(self.url.port)


def down() -> RpcException:
    return RpcException("gone", RpcCode.NETWORK)


def call(key: object = "k") -> Invocation:
    return Invocation("get", "Ljava/lang/String;", [key])


def cluster(
    kind: Callable[..., ClusterInvoker], providers: Sequence[Invoker], **parameters: object
) -> ClusterInvoker:
    return kind(
        StaticDirectory(INTERFACE, URL("consumer", "c", 0, "com.acme.Api").add(parameters), providers)
    )


def shares(
    balance: LoadBalance, providers: Sequence[Provider], count: int, key: Callable[[int], object] = str
) -> Counter[int]:
    return Counter(balance.select(providers, call(key(n))).url.port for n in range(count))


# -- load balancing ------------------------------------------------------------------------------------------


def test_random_follows_the_weights() -> None:
    random.seed(1)
    providers = [Provider(1, weight=1), Provider(2, weight=3)]
    counted = shares(RandomLoadBalance(), providers, 4000)
    assert 2800 < counted[2] < 3200
    even = shares(RandomLoadBalance(), [Provider(1), Provider(2)], 4000)
    assert 1850 < even[1] < 2150


def test_a_weight_of_nothing_gets_nothing_unless_all_have_it() -> None:
    assert shares(RandomLoadBalance(), [Provider(1, weight=0), Provider(2)], 200) == {2: 200}
    assert set(shares(RandomLoadBalance(), [Provider(1, weight=0), Provider(2, weight=0)], 200)) == {1, 2}
    assert shares(RoundRobinLoadBalance(), [Provider(1, weight=0), Provider(2)], 200) == {2: 200}
    busy = Provider(2)
    busy.active["get"] = 3
    assert shares(LeastActiveLoadBalance(), [Provider(1, weight=0), busy], 200) == {2: 200}
    assert shares(LeastActiveLoadBalance(), [Provider(1, weight=0)], 200) == {1: 200}


def test_round_robin_is_smooth() -> None:
    balance = RoundRobinLoadBalance()
    providers = [Provider(1, weight=5), Provider(2, weight=1), Provider(3, weight=1)]
    order = [balance.select(providers, call()).url.port for _ in range(14)]
    assert Counter(order) == {1: 10, 2: 2, 3: 2}
    assert order[:7] == order[7:]
    assert order[:7] == [1, 1, 2, 1, 3, 1, 1]


def test_least_active_goes_to_the_idle() -> None:
    busy, idle, also_idle = Provider(1), Provider(2), Provider(3)
    busy.active["get"] = 3
    counted = shares(LeastActiveLoadBalance(), [busy, idle, also_idle], 200)
    assert set(counted) == {2, 3}


def test_consistent_hash_keeps_a_key_where_it_is() -> None:
    balance = ConsistentHashLoadBalance()
    providers = [Provider(port) for port in (1, 2, 3, 4)]
    before = {n: balance.select(providers, call(f"key-{n}")).url.port for n in range(1000)}
    assert before == {n: balance.select(providers, call(f"key-{n}")).url.port for n in range(1000)}
    assert min(Counter(before.values()).values()) > 100
    fewer = providers[:3]
    after = {n: balance.select(fewer, call(f"key-{n}")).url.port for n in range(1000)}
    assert all(after[n] == port for n, port in before.items() if port != 4)


def test_consistent_hash_can_count_other_arguments() -> None:
    providers = [Provider(port, **{"hash.arguments": "1"}) for port in (1, 2, 3)]
    balance = ConsistentHashLoadBalance()
    chosen = {balance.select(providers, Invocation("get", "", [n, "same"])).url.port for n in range(50)}
    assert len(chosen) == 1


def test_a_cold_provider_warms_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.services.cluster.loadbalance.time.time", lambda: 1_000.0)
    assert weight_of(Provider(1, timestamp=999_000, warmup=10_000), call()) == 10
    assert weight_of(Provider(1, timestamp=999_999, warmup=10_000), call()) == 1
    assert weight_of(Provider(1, timestamp=900_000, warmup=10_000), call()) == 100
    assert weight_of(Provider(1, **{"get.weight": 7}), call()) == 7


# -- strategies ----------------------------------------------------------------------------------------------


async def test_failover_tries_others() -> None:
    bad, good = Provider(1, fail=down()), Provider(2)
    for _ in range(20):
        assert (await cluster(FailoverCluster, [bad, good]).invoke(call())).value == 2
    assert good.calls == 20


async def test_failover_gives_up_after_its_retries_and_says_whom_it_asked() -> None:
    providers = [Provider(port, fail=down()) for port in (1, 2, 3, 4)]
    with pytest.raises(
        RpcException, match=r"Tried 3 times of the providers .* \(3/4\).*Last error is: gone"
    ) as raised:
        await cluster(FailoverCluster, providers, retries=2).invoke(call())
    assert raised.value.code == RpcCode.NETWORK
    assert sorted(p.calls for p in providers) == [0, 1, 1, 1]
    with pytest.raises(RpcException, match="Tried 1 times"):
        await cluster(FailoverCluster, providers, **{"retries": 2, "get.retries": 0}).invoke(call())


async def test_what_an_implementation_raised_is_an_answer() -> None:
    class Raises(Provider):
        async def invoke(self, invocation: Invocation) -> Result:
            self.calls += 1
            return Result(None, ValueError("business"))

    provider = Raises(1)
    result = await cluster(FailoverCluster, [provider, provider]).invoke(call())
    assert isinstance(result.exception, ValueError)
    assert provider.calls == 1


async def test_failover_prefers_who_is_there() -> None:
    away, here = Provider(1), Provider(2)
    away.available = False
    for _ in range(20):
        assert (await cluster(FailoverCluster, [away, here]).invoke(call())).value == 2


async def test_calls_can_stick_to_one_provider() -> None:
    providers = [Provider(port, sticky=True) for port in (1, 2, 3)]
    sticky = cluster(FailoverCluster, providers, sticky=True)
    first = (await sticky.invoke(call())).value
    assert {(await sticky.invoke(call())).value for _ in range(20)} == {first}
    providers[int(str(first)) - 1].available = False
    assert (await sticky.invoke(call())).value != first


async def test_a_method_that_does_not_stick_leaves_another_that_does_where_it_is() -> None:
    providers = [Provider(port, **{"get.sticky": True}) for port in (1, 2, 3)]
    sticky = cluster(FailoverCluster, providers)
    first = (await sticky.invoke(call())).value
    for _ in range(20):
        await sticky.invoke(Invocation("put", "Ljava/lang/String;", ["k"]))
        assert (await sticky.invoke(call())).value == first
    assert len([p for p in providers if p.calls]) > 1  # the other method goes everywhere


async def test_failfast_asks_once() -> None:
    providers = [Provider(port, fail=down()) for port in (1, 2)]
    with pytest.raises(RpcException, match="Failfast invoke providers"):
        await cluster(FailfastCluster, providers).invoke(call())
    assert sum(p.calls for p in providers) == 1


async def test_failsafe_answers_nothing() -> None:
    assert (await cluster(FailsafeCluster, [Provider(1, fail=down())]).invoke(call())).value is None
    assert (await cluster(FailsafeCluster, []).invoke(call())).value is None


async def test_failback_tries_again_later() -> None:
    provider = Provider(1, fail=down())
    retrying = cluster(FailbackCluster, [provider], **{"failback.period": 10})
    assert (await retrying.invoke(call())).value is None
    provider.fail = None
    for _ in range(500):
        if provider.calls == 2:
            break
        await asyncio.sleep(0.01)
    assert provider.calls == 2
    await retrying.destroy()


async def test_failback_abandons_what_never_works(caplog: pytest.LogCaptureFixture) -> None:
    provider = Provider(1, fail=down())
    retrying = cluster(FailbackCluster, [provider], **{"failback.period": 1, "retries": 2})
    await retrying.invoke(call())
    for _ in range(500):
        if "We have to abandon" in caplog.text:
            break
        await asyncio.sleep(0.01)
    assert provider.calls == 3
    await retrying.destroy()


async def test_forking_takes_the_first_answer() -> None:
    providers = [Provider(1, delay=5), Provider(2, delay=0.01), Provider(3, fail=down())]
    assert (await cluster(ForkingCluster, providers, forks=3, timeout=3000).invoke(call())).value == 2
    with pytest.raises(RpcException, match="Failed to forking invoke provider"):
        await cluster(ForkingCluster, [providers[2], providers[2]], forks=2).invoke(call())
    with pytest.raises(RpcException, match="no provider answered in time"):
        await cluster(ForkingCluster, [Provider(1, delay=5)], timeout=20).invoke(call())


async def test_a_method_can_have_forks_of_its_own() -> None:
    providers = [Provider(port) for port in range(4)]
    await cluster(ForkingCluster, providers, forks=1, **{"get.forks": 3}).invoke(call())
    assert sum(provider.calls for provider in providers) == 3


async def test_available_takes_the_default_registry_first() -> None:
    ordinary, default = Provider(1), Provider(2, **{"registry.default": True})
    both = cluster(AvailableCluster, [ordinary, default])
    assert (await both.invoke(call())).value == 2
    default.available = False
    assert (await both.invoke(call())).value == 1
    ordinary.available = False
    with pytest.raises(RpcException, match="No provider available"):
        await both.invoke(call())


async def test_no_provider_is_said_in_dubbos_words() -> None:
    with pytest.raises(RpcException, match=r"No provider available for the service com\.acme\.Api") as raised:
        await cluster(FailoverCluster, []).invoke(call())
    assert raised.value.code == RpcCode.NO_INVOKER


async def test_a_destroyed_cluster_refuses() -> None:
    ended = cluster(FailoverCluster, [Provider(1)])
    await ended.destroy()
    with pytest.raises(RpcException, match="is now destroyed"):
        await ended.invoke(call())


async def test_calls_under_way_are_counted() -> None:
    provider = Provider(1, delay=0.05)
    running = asyncio.ensure_future(cluster(FailoverCluster, [provider]).invoke(call()))
    await asyncio.sleep(0.01)
    assert provider.active["get"] == 1
    await running
    assert provider.active["get"] == 0


# -- URLs and rules ------------------------------------------------------------------------------------------


def test_a_consumers_settings_win_over_the_providers_but_not_its_identity() -> None:
    provider = URL.parse("dubbo://p:1/a.B?timeout=1&version=2&timestamp=5&threads=9&application=p&retries=7")
    merged = merge_url(
        provider, {"timeout": "3", "version": "9", "timestamp": "6", "application": "c", "side": "consumer"}
    )
    assert merged.get("timeout") == "3"
    assert merged.get("retries") == "7"
    assert (merged.get("version"), merged.get("timestamp")) == ("2", "5")
    assert merged.get("threads") == ""
    assert (merged.get("application"), merged.get("remote.application")) == ("c", "p")


PROVIDER_URL = URL.parse("dubbo://10.0.0.5:20880/a.B?side=provider&application=shop&timeout=100")


@pytest.mark.parametrize(
    ("rule", "timeout"),
    [
        ("override://0.0.0.0/a.B?timeout=5", "5"),
        ("override://10.0.0.5:20880/a.B?timeout=5", "5"),
        ("override://10.0.0.5:20881/a.B?timeout=5", "100"),
        ("override://10.0.0.9:20880/a.B?timeout=5", "100"),
        ("override://10.0.0.5/a.B?timeout=5", "100"),  # without a port a host means a consumer
        ("override://0.0.0.0/a.B?timeout=5&enabled=false", "100"),
        ("override://0.0.0.0/a.B?timeout=5&application=shop", "5"),
        ("override://0.0.0.0/a.B?timeout=5&application=bank", "100"),
        ("override://0.0.0.0/a.B?timeout=5&side=consumer", "100"),
        ("override://0.0.0.0/a.B?timeout=5&~timeout=100", "5"),
        ("override://0.0.0.0/a.B?timeout=5&~timeout=101", "100"),
        ("override://0.0.0.0/a.B?timeout=5&providerAddresses=10.0.0.5:20880", "5"),
        ("override://0.0.0.0/a.B?timeout=5&providerAddresses=10.0.0.6:20880", "100"),
    ],
)
def test_a_rule_is_for_whom_it_names(rule: str, timeout: str) -> None:
    assert OverrideConfigurator(URL.parse(rule)).configure(PROVIDER_URL).get("timeout") == timeout


def test_an_absent_rule_fills_gaps_only() -> None:
    changed = AbsentConfigurator(URL.parse("absent://0.0.0.0/a.B?timeout=5&weight=7")).configure(PROVIDER_URL)
    assert (changed.get("timeout"), changed.get("weight")) == ("100", "7")


def test_rules_apply_from_general_to_particular_and_by_priority() -> None:
    rules = to_configurators(
        URL.parse(text)
        for text in (
            "override://10.0.0.5:20880/a.B?timeout=1",
            "override://0.0.0.0/a.B?timeout=2&priority=2",
            "override://0.0.0.0/a.B?timeout=3&priority=1",
        )
    )
    assert [rule.url.get("timeout") for rule in rules] == ["3", "2", "1"]
    assert to_configurators([URL.parse("empty://0.0.0.0/a.B?category=configurators")]) == []


def test_a_rule_with_a_slip_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    good = URL.parse("override://0.0.0.0/a.B?timeout=5")
    slips = [URL.parse(f"override://0.0.0.0/a.B?{p}") for p in ("timeout=soon", "find.retries=1.5")]
    assert [rule.url for rule in to_configurators([*slips, URL.parse("bend://0.0.0.0/a.B?x=1"), good])] == [
        good
    ]
    assert "timeout=soon is not a whole number" in caplog.text
    assert "there is no configurator 'bend'" in caplog.text


def routed(rule: str, **parameters: object) -> list[int]:
    providers = [Provider(1, region="north"), Provider(2, region="south")]
    url = URL("condition", "0.0.0.0", 0, "com.acme.Api", {"rule": encode(rule)}).add(parameters)
    consumer = URL.parse("consumer://10.1.2.3/com.acme.Api?application=web&region=south")
    return [invoker.url.port for invoker in route(to_routers([url]), providers, consumer, call())]


@pytest.mark.parametrize(
    ("rule", "ports"),
    [
        ("=> region = north", [1]),
        ("host = 10.1.* => region = north", [1]),
        ("host = 10.2.* => region = north", [1, 2]),
        ("host != 10.1.2.3 => region = north", [1, 2]),
        ("method = get* & application = web,shop => region != north", [2]),
        ("method = put* => region != north", [1, 2]),
        ("=> region = $region", [2]),
        ("=> region = nowhere", [1, 2]),
        ("host = 10.1.2.3 =>", []),
        ("=> port = 2", [2]),
        ("", [1, 2]),
        ("= broken", [1, 2]),
    ],
)
def test_routes(rule: str, ports: list[int]) -> None:
    assert routed(rule) == ports


def test_a_route_can_be_forced_or_switched_off() -> None:
    assert routed("=> region = nowhere", force=True) == []
    assert routed("=> region = north", enabled=False) == [1, 2]


def test_a_route_that_cannot_be_read_says_where() -> None:
    with pytest.raises(ValueError, match="',' before 'b' is out of place"):
        Router(URL("condition", "h", 0, "x", {"rule": encode("a , b => c = d")}))

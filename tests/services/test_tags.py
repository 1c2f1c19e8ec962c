"""Tags: a tagged provider serves those who ask for it, untagged ones everybody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.services import Bootstrap, RegistryConfig, attach


@pytest.fixture
def fleet(
    who: Any,
    application: Callable[..., Bootstrap],
    registry: Callable[..., RegistryConfig],
    eventually: Callable[..., None],
) -> Callable[..., Any]:
    """Three providers, two of them tagged; makes references that see all three."""
    who.provide(registry(), "plain")
    gray = who.provide(registry(), "gray", tag="gray")
    who.provide(registry(), "blue", tag="blue")

    def refer(**settings: Any) -> Any:
        proxy = application("consumer", registry=registry()).reference(who.interface, **settings)

        def sees_all() -> bool:
            seen = who.answers(proxy, 1)
            for tag in ("gray", "blue"):
                with attach({"dubbo.tag": tag}):
                    seen |= who.answers(proxy, 1)
            return {"gray", "blue"} <= seen

        eventually(sees_all)
        return proxy

    refer.gray = gray  # type: ignore[attr-defined]
    return refer


def test_a_call_without_a_tag_goes_to_untagged_providers_only(who: Any, fleet: Callable[..., Any]) -> None:
    assert who.answers(fleet()) == {"plain"}


def test_a_call_with_a_tag_goes_to_the_providers_that_have_it(who: Any, fleet: Callable[..., Any]) -> None:
    proxy = fleet()
    with attach({"dubbo.tag": "gray"}):
        assert who.answers(proxy) == {"gray"}
    assert who.answers(proxy) == {"plain"}


def test_a_reference_has_a_tag_for_calls_that_name_none(who: Any, fleet: Callable[..., Any]) -> None:
    proxy = fleet(tag="gray")
    assert who.answers(proxy) == {"gray"}
    with attach({"dubbo.tag": "blue"}):
        assert who.answers(proxy) == {"blue"}


def test_a_tag_nobody_has_falls_back_to_untagged_providers(who: Any, fleet: Callable[..., Any]) -> None:
    with attach({"dubbo.tag": "green"}):
        assert who.answers(fleet()) == {"plain"}


def test_a_forced_tag_that_nobody_has_reaches_nobody(who: Any, fleet: Callable[..., Any]) -> None:
    proxy = fleet()
    with attach({"dubbo.tag": "green", "dubbo.force.tag": "true"}):
        assert who.answers(proxy) == {"nobody"}
    proxy = fleet(tag="green", parameters={"dubbo.force.tag": "true"})
    assert who.answers(proxy) == {"nobody"}


def test_when_the_tagged_provider_goes_its_callers_fall_back(
    who: Any, fleet: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    proxy = fleet(tag="gray")
    assert who.answers(proxy) == {"gray"}
    fleet.gray.stop()  # type: ignore[attr-defined]
    eventually(lambda: who.answers(proxy) == {"plain"})

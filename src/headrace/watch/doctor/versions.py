"""Versions: brokers that differ, and feature levels that were left behind by an upgrade."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.link.opening import Offer
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, listed, note, warning
from headrace.watch.doctor.scene import Scene


def _differing(scene: Scene) -> Iterator[Finding]:
    yield from differing(scene.offers)


def differing(offers: Mapping[int, Offer]) -> Iterator[Finding]:
    """No request reports a broker's version, but the requests that it serves are its fingerprint."""
    alike: dict[frozenset[tuple[int, tuple[int, int]]], list[int]] = {}
    for broker, offer in sorted(offers.items()):
        alike.setdefault(frozenset(offer.versions.items()), []).append(broker)
    if len(alike) > 1:
        sets = sorted(alike.values(), key=len)
        yield warning(
            f"Brokers run different versions: {' and '.join(listed(each) for each in sets)} do not serve the same requests.",
            "Finish the upgrade: restart the older ones with the new version, one after the other.",
            [broker for each in sets[:-1] for broker in each],
        )


def _features(scene: Scene) -> Iterator[Finding]:
    behind = [each for each in scene.features if each.level < each.highest]
    if behind:
        yield note(
            "Feature levels are below what the brokers support: "
            + listed([f"{each.name} is {each.level} of {each.highest}" for each in behind])
            + ".",
            "When no broker has to go back to an older version any more: 'headrace features set "
            + " ".join(f"{each.name}={each.highest}" for each in behind)
            + "'.",
            [each.name for each in behind],
        )


VERSIONS = Check(
    "broker-versions",
    Severity.WARNING,
    "whether all brokers serve the same requests, and so run the same version",
    Needs.CLUSTER,
    _differing,
)
FEATURES = Check(
    "feature-levels", Severity.NOTE, "feature levels below what the brokers support", Needs.CLUSTER, _features
)

"""The addresses that brokers advertise: clients use these and no others once they know the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.watch.doctor import listeners
from headrace.watch.doctor.contacts import is_loopback
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity, error, listed, warning
from headrace.watch.doctor.scene import Scene


def _unreachable(scene: Scene) -> Iterator[Finding]:
    contacts = scene.contacts
    if contacts.trouble:
        trouble = contacts.trouble.rstrip(".")
        yield error(
            f"No broker answers: {trouble}.",
            "Start the broker ('headrace up'), or name a running one with --bootstrap-server.",
        )
    for each in contacts.brokers:
        if each.offer is None:
            yield error(
                f"Broker {each.broker} advertises {each.address}, which does not answer from here ({each.trouble.rstrip('.')}).",
                f"Start broker {each.broker} if it is down; otherwise set advertised.listeners (--advertise) to an address that "
                "clients can reach.",
                [each.broker],
            )


def _loopback(scene: Scene) -> Iterator[Finding]:
    contacts = scene.contacts
    far = [host for host in contacts.servers if not is_loopback(host)]
    here = [each for each in contacts.brokers if is_loopback(each.host)]
    elsewhere = [each for each in contacts.brokers if not is_loopback(each.host)]
    if here and (far or elsewhere):
        reason = (
            f"was reached at {far[0]}" if far else f"has brokers elsewhere, such as {elsewhere[0].address}"
        )
        yield error(
            f"{_brokers([each.broker for each in here])} {here[0].address}, which means the client's own machine, though this "
            f"cluster {reason}.",
            "Set advertised.listeners (--advertise) to the broker's host name or address.",
            [each.broker for each in here],
        )
        return
    for place, settings in scene.all_broker_settings.items():
        advertised = {each.name: each for each in listeners.advertised(settings)}
        for each in listeners.bound(settings):
            told = advertised.get(each.name)
            if told is not None and told.is_local and not each.is_local:
                yield warning(
                    f"{place} listens on {each}, open to other machines, but advertises {told}, which means the client's own "
                    "machine.",
                    "Set advertised.listeners (--advertise) to the broker's host name or address, or bind the listener to "
                    "127.0.0.1.",
                    [place],
                )


def _brokers(ids: list[int]) -> str:
    return f"Broker {ids[0]} advertises" if len(ids) == 1 else f"Brokers {listed(ids)} advertise"


REACHABLE = Check(
    "advertised-address",
    Severity.ERROR,
    "whether each broker answers, from here, at the address it advertises",
    Needs.BROKERS,
    _unreachable,
)
LOOPBACK = Check(
    "advertised-loopback",
    Severity.ERROR,
    "loopback addresses advertised to clients that come from elsewhere",
    Needs.SETTINGS,
    _loopback,
)

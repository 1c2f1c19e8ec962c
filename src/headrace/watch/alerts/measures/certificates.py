"""Rules about certificates that expire, seen as any client sees them: by connecting to the listener.

Neither trust nor names are checked here: an expired certificate of an unknown authority has a date as well.
"""

from __future__ import annotations

from headrace.client.durations import show_seconds
from headrace.link.addresses import split_address
from headrace.link.certificates import shown_at, validity_of
from headrace.link.tls import Tls
from headrace.watch.alerts.conditions import CertificateExpiry
from headrace.watch.alerts.sight import Sight
from headrace.watch.alerts.states import Finding, Seen


def findings(condition: CertificateExpiry, sight: Sight, tls: Tls | None) -> list[Finding]:
    """One for each listener; ``tls`` is what the connection to the cluster uses, None when that is not encrypted."""
    listeners = dict.fromkeys(condition.listeners)
    if tls is not None:
        listeners.update(dict.fromkeys(f"{node.host}:{node.port}" for node in sight.session.nodes))
    return [_listener(condition, each, tls or Tls(), sight.now) for each in listeners]


def _listener(condition: CertificateExpiry, listener: str, tls: Tls, now: float) -> Finding:
    labels = (("listener", listener),)
    try:
        _, expires = validity_of(shown_at(*split_address(listener), tls))
    except (OSError, ValueError) as error:
        return Finding(labels, Seen.MISSING, f"the certificate of {listener} cannot be seen: {error}")
    left = expires.timestamp() - now
    when = f"on {expires:%Y-%m-%d %H:%M} UTC"
    if left <= 0:
        return Finding(labels, Seen.ACTIVE, f"the certificate of {listener} expired {when}", left)
    summary = f"the certificate of {listener} expires in {show_seconds(left)}, {when}"
    return Finding(labels, Seen.ACTIVE if left < condition.within else Seen.CLEAR, summary, round(left))

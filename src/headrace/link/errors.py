"""What goes wrong between a client and a broker before the broker has said anything."""

from __future__ import annotations


class BrokerUnavailable(ConnectionError):
    """A broker that cannot be reached, or a connection that ended before the reply; worth another try."""
